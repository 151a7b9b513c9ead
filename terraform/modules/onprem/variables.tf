variable "hosts" {
  description = "The machines in their order, by name and by the address that ssh connects to; the first cluster_size / cards of them are used. Port, user, jump_host and host_key (type and key, as in known_hosts) hold for the one machine, cluster_address is its address for training where that is another, bmc that of its management controller."
  type = list(object({
    name            = string
    address         = string
    cluster_address = optional(string)
    port            = optional(number)
    user            = optional(string)
    jump_host       = optional(string)
    host_key        = optional(string)
    bmc             = optional(string)
    zone            = optional(string)
  }))
  default  = []
  nullable = false

  validation {
    condition     = length(var.hosts) == 0 || var.hosts_file == ""
    error_message = "hosts and hosts_file are both given: leave one of them out."
  }
}

variable "hosts_file" {
  description = "File with the machines in place of hosts, as YAML (a list, or a mapping with the key hosts) or, if it ends in .csv, with a line of names first; the names are those of hosts, and role = monitor marks the monitoring machine. Its path is absolute or relative to the root module."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.hosts_file == "" || can(file(var.hosts_file))
    error_message = "hosts_file is '${var.hosts_file}', which cannot be read: give the absolute path of a YAML or CSV file."
  }
}

variable "monitor_host" {
  description = "The monitoring machine, with the same fields as a machine in hosts; null leaves monitoring to the first node."
  type = object({
    name            = string
    address         = string
    cluster_address = optional(string)
    port            = optional(number)
    user            = optional(string)
    jump_host       = optional(string)
    host_key        = optional(string)
    bmc             = optional(string)
    zone            = optional(string)
  })
  default = null

  validation {
    condition     = var.monitor_host == null || can(regex("^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$", try(var.monitor_host.name, "")))
    error_message = "monitor_host is called '${try(var.monitor_host.name, "")}': give a name in lower-case letters, digits and dashes."
  }
}

variable "ssh_user" {
  description = "User that Ansible logs in as."
  type        = string
  default     = "ubuntu"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the one that exists on the machines, such as ubuntu."
  }
}
