# Written by terraform/generate.py from terraform/modules/onprem, where each variable is checked.

variable "hosts" {
  description = "The machines in their order, by name and address on the cluster network; the first cluster_size / cards of them are used."
  type = list(object({
    name    = string
    address = string
    zone    = optional(string)
  }))
}

variable "monitor_host" {
  description = "The monitoring machine, by name and address; null leaves monitoring to the first node."
  type = object({
    name    = string
    address = string
  })
  default = null
}

variable "ssh_user" {
  description = "User that Ansible logs in as."
  type        = string
  default     = "ubuntu"
}
