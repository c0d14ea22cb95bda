"""Finished runs read back: why a job is where it is, what each tenant pays, which jobs never trained."""
