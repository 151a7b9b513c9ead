# Machines that are there already: nothing is made, the same checks are made and the same outputs given.

module "cluster" {
  source = "../cluster"

  cloud                     = "onprem"
  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
  extra_instance_types      = var.extra_instance_types
  name                      = var.name
  tags                      = var.tags
  allowed_cidrs             = var.allowed_cidrs
  ssh_public_key            = var.ssh_public_key
  ssh_key_required          = false
  dedicated_monitor         = var.monitor_host != null
}

locals {
  used = slice(var.hosts, 0, min(length(module.cluster.node_names), length(var.hosts)))
}

# What was asked for; a state whose outputs do not match it is half applied, and the inventory plugin refuses it.
resource "terraform_data" "intent" {
  input = {
    hosts = length(local.used) + (var.monitor_host == null ? 0 : 1)
    names = concat(local.used[*].name, var.monitor_host == null ? [] : [var.monitor_host.name])
  }
}
