# Written by terraform/generate.py from terraform/modules/onprem, where each variable is checked.

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
}

variable "hosts_file" {
  description = "File with the machines in place of hosts, as YAML (a list, or a mapping with the key hosts) or, if it ends in .csv, with a line of names first; the names are those of hosts, and role = monitor marks the monitoring machine. Its path is absolute or relative to the root module."
  type        = string
  default     = ""
  nullable    = false
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
}

variable "ssh_user" {
  description = "User that Ansible logs in as."
  type        = string
  default     = "ubuntu"
  nullable    = false
}
