# The variables of clouds that make machines: this file is the same in all of them, and a test says so. They are
# checked in modules/cluster.

variable "dedicated_monitor" {
  description = "Whether Prometheus, Alertmanager and Grafana get a small machine of their own; without it they share the first node."
  type        = bool
  default     = true
  nullable    = false
}

variable "nvme_mount" {
  description = "Where the local NVMe disks, joined into one striped volume, are mounted on the nodes. Their content dies with the machine."
  type        = string
  default     = "/scratch"
  nullable    = false
}

variable "root_volume_gb" {
  description = "Size of a node's root volume, in GB."
  type        = number
  default     = 200
  nullable    = false
}

variable "network_cidr" {
  description = "Private network of the cluster; it must be /16 to /22 and not overlap with networks that are peered to it."
  type        = string
  default     = "10.42.0.0/16"
  nullable    = false
}

variable "max_hourly_usd" {
  description = "Refuse a cluster whose nodes cost more than this per hour on demand, by the catalogue's price; null for no limit."
  type        = number
  default     = null
}

variable "node_usd_per_hour" {
  description = "Price of a node per hour, in USD, as you were quoted it; null for the catalogue's."
  type        = number
  default     = null
}

variable "ttl" {
  description = "How long a machine may run, such as 90m, 12h or 3d: then it powers itself off, jobs are sent SIGTERM and save. Empty for no end."
  type        = string
  default     = ""
  nullable    = false
}

variable "idle_shutdown" {
  description = "After how long without a process on its accelerators and without a login a node powers itself off, such as 2h; empty for never."
  type        = string
  default     = ""
  nullable    = false
}
