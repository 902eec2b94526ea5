"""What binds the kinds of questions together."""

TOPIC_OF_FIELD = {
    "drivers_preinstalled": "drivers_preinstalled",
    "driver_version": "driver_cuda_alignment",
    "device_plugin": "device_plugin",
    "sharing": "multiple_workloads_per_gpu",
    "interconnect": "networking",
    "spot_notice": "spot",
    "billing_unit": "billing_idle",
    "control_plane_fee": "billing_idle",
    "scale_to_zero": "billing_idle",
}
"""The topic that answers in general what is asked about one provider."""
