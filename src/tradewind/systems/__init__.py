"""One package per scheduling system: policies, kernels, bounds, workloads and studies that belong to it alone."""
