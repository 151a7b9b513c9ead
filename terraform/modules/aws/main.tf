# A Gaudi cluster on AWS: its own network, machines with EFA in one placement group, a bucket for checkpoints.

module "cluster" {
  source = "../cluster"

  cloud                     = "aws"
  region                    = var.region
  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
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
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_ec2_instance_type_offerings" "type" {
  location_type = "availability-zone"

  filter {
    name   = "instance-type"
    values = [module.cluster.instance_type]
  }
}

data "aws_ssm_parameter" "image" {
  count = var.image_id == "" ? 1 : 0
  name  = var.image_parameter
}

locals {
  type     = module.cluster.type
  tags     = module.cluster.tags
  image_id = var.image_id == "" ? data.aws_ssm_parameter.image[0].insecure_value : var.image_id

  zones = sort(data.aws_ec2_instance_type_offerings.type.locations)
  zone  = var.availability_zone == "" ? try(local.zones[0], "") : var.availability_zone

  # One network interface for each network card. Some types have a first card without EFA.
  efa            = coalesce(var.efa, local.type.efa_interfaces > 0)
  first_efa_card = local.type.network_cards - local.type.efa_interfaces
  interfaces = [
    for card in range(local.efa ? local.type.network_cards : 1) : {
      card   = card
      device = card == 0 ? 0 : 1
      type   = local.efa && card >= local.first_efa_card ? "efa" : "interface"
    }
  ]

  # How each node is bought. An autoscaling group mixes by itself, from a template that does not say.
  fixed_nodes = var.autoscaling ? {} : {
    for name, node in module.cluster.nodes : name => {
      index  = node.index
      market = var.capacity == "spot" && node.index < var.on_demand_nodes ? "on-demand" : var.capacity
    }
  }
  markets = var.autoscaling && var.capacity == "spot" ? ["on-demand"] : distinct(concat([var.capacity], var.on_demand_nodes > 0 ? ["on-demand"] : []))
}

# What was asked for, written down before the machines are made: a state whose outputs do not match it is half applied,
# and the inventory plugin refuses it.
resource "terraform_data" "intent" {
  input = {
    hosts = length(module.cluster.node_names) + (var.dedicated_monitor ? 1 : 0)
    names = var.autoscaling ? [] : concat(module.cluster.node_names, compact([module.cluster.monitor_name]))
  }
}

check "generation" {
  assert {
    condition     = try(local.type.gaudi_generation, 0) == null || try(local.type.gaudi_generation, 0) != 1
    error_message = "${var.instance_type} has first-generation Gaudi, which current SynapseAI releases no longer list: look at the vendor's support matrix before you pay for it."
  }
}
