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
  ssh_key_required          = local.own_key
  ssh_key_types             = ["ssh-ed25519", "ssh-rsa"]
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

locals {
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

  lifecycle {
    precondition {
      condition     = var.teardown || var.root_volume_gb <= 250
      error_message = "root_volume_gb is ${var.root_volume_gb}, but a boot volume on IBM Cloud has 250 GB at most: give 100 to 250, and keep data on ${var.nvme_mount}."
    }

    precondition {
      condition     = var.teardown || local.profile == null || var.network_interfaces <= try(one(local.profile.network_attachment_count).max, 15)
      error_message = "network_interfaces is ${var.network_interfaces}, but a ${var.instance_type} has ${try(one(local.profile.network_attachment_count).max, "?")} at most: give no more than these."
    }

    precondition {
      condition     = var.teardown || var.capacity != "spot" || contains(try(one(local.profile.availability_class).values, []), "spot")
      error_message = "capacity is spot, but IBM Cloud does not sell a ${var.instance_type} as spot in ${var.region}: set capacity = on-demand."
    }

    precondition {
      condition     = local.ssh_user != null
      error_message = "image is '${local.image_name}', whose user is not known here: give it as ssh_user."
    }
  }
}
