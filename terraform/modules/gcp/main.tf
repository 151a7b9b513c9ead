# A cluster on Google Cloud, of machines that you name: Google Cloud is not known to offer one with Gaudi, so the type
# comes from extra_instance_types and accept_other_accelerators says that you mean it.

module "cluster" {
  source = "../cluster"

  cloud                     = "gcp"
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

locals {
  project = var.project == "" ? null : var.project
  zone    = var.zone == "" ? "${var.region}-a" : var.zone
  hosts   = concat(module.cluster.node_names, compact([module.cluster.monitor_name]))
  # Labels are in lower case.
  labels = { for key, value in module.cluster.tags : lower(key) => replace(lower(value), "/[^a-z0-9_-]/", "-") }
}

# What was asked for, written down before the machines are made: a state whose outputs do not match it is half applied,
# and the inventory plugin refuses it.
resource "terraform_data" "intent" {
  input = {
    hosts = length(local.hosts)
    names = local.hosts
  }
}
