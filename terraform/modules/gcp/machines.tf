# The variables of clouds that make machines: this file is the same in all of them, and a test says so. They are
# checked in modules/cluster.

variable "dedicated_monitor" {
  description = "Whether Prometheus, Alertmanager and Grafana get a small machine of their own; without it they share the first node."
  type        = bool
  default     = true
}

variable "nvme_mount" {
  description = "Where the local NVMe disks, joined into one striped volume, are mounted on the nodes. Their content dies with the machine."
  type        = string
  default     = "/scratch"
}

variable "root_volume_gb" {
  description = "Size of a node's root volume, in GB."
  type        = number
  default     = 200
}

variable "network_cidr" {
  description = "Private network of the cluster; it must be /16 to /22 and not overlap with networks that are peered to it."
  type        = string
  default     = "10.42.0.0/16"
}

variable "max_hourly_usd" {
  description = "Refuse a cluster whose nodes cost more than this per hour on demand, by the catalogue's price; null for no limit."
  type        = number
  default     = null
}
