# A Gaudi 3 cluster in IBM Cloud's VPC: machines with private addresses, a bucket for checkpoints that they reach by a
# trusted profile, without an API key.

module "cluster" {
  source = "../cluster"

  cloud                     = "ibm"
  region                    = var.region
  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
  accept_withdrawn_type     = var.accept_withdrawn_type
  extra_instance_types      = var.extra_instance_types
  name                      = var.name
  tags                      = var.tags
  allowed_cidrs             = var.allowed_cidrs
  ssh_public_key            = var.ssh_public_key
  dedicated_monitor         = var.dedicated_monitor
  nvme_mount                = var.nvme_mount
  root_volume_gb            = var.root_volume_gb
  network_cidr              = var.network_cidr
  max_hourly_usd            = var.max_hourly_usd
  node_usd_per_hour         = var.node_usd_per_hour
  ttl                       = var.ttl
  idle_shutdown             = var.idle_shutdown
  teardown                  = var.teardown
}

data "ibm_resource_group" "cluster" {
  name       = var.resource_group == "" ? null : var.resource_group
  is_default = var.resource_group == "" ? true : null
}

data "ibm_is_image" "node" {
  name = var.image
}

locals {
  zone  = var.zone == "" ? "${var.region}-1" : var.zone
  group = data.ibm_resource_group.cluster.id
  # IBM's tags are words, not pairs.
  tags = [for key, value in module.cluster.tags : lower("${key}:${value}")]
}

# What was asked for, written down before the machines are made: a state whose outputs do not match it is half applied,
# and the inventory plugin refuses it.
resource "terraform_data" "intent" {
  input = {
    hosts = length(module.cluster.node_names) + (var.dedicated_monitor ? 1 : 0)
    names = concat(module.cluster.node_names, compact([module.cluster.monitor_name]))
  }
}
