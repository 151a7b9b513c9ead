variable "hosts" {
  description = "The machines in their order, by name and address on the cluster network; the first cluster_size / cards of them are used."
  type = list(object({
    name    = string
    address = string
    zone    = optional(string)
  }))

  validation {
    condition     = length(var.hosts) == length(distinct(var.hosts[*].name)) && length(var.hosts) == length(distinct(var.hosts[*].address))
    error_message = "hosts has a name or an address twice (${join(", ", [for host in var.hosts : "${host.name} ${host.address}"])}): give each machine its own."
  }

  validation {
    condition     = length(var.hosts) >= length(module.cluster.node_names)
    error_message = "hosts has ${length(var.hosts)} machines, but cluster_size = ${var.cluster_size} needs ${length(module.cluster.node_names)} of type ${var.instance_type}: add machines or ask for fewer cards."
  }
}

variable "monitor_host" {
  description = "The monitoring machine, by name and address; null leaves monitoring to the first node."
  type = object({
    name    = string
    address = string
  })
  default = null

  validation {
    condition     = var.monitor_host == null || !contains(concat(var.hosts[*].name, var.hosts[*].address), try(var.monitor_host.name, ""))
    error_message = "monitor_host is called as one of hosts is (${try(var.monitor_host.name, "")}): give it a name of its own, or leave it out to let the first node monitor."
  }
}

variable "ssh_user" {
  description = "User that Ansible logs in as."
  type        = string
  default     = "ubuntu"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the one that exists on the machines, such as ubuntu."
  }
}
