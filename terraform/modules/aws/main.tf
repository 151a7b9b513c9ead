# A Gaudi cluster on AWS: its own network, machines with EFA in one placement group, a bucket for checkpoints.

module "cluster" {
  source = "../cluster"

  cloud                     = "aws"
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
  ssh_key_required          = var.existing_key_name == ""
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
  count = var.image_id == "" && !var.teardown ? 1 : 0
  name  = var.image_parameter
}

data "aws_ami" "node" {
  count = var.teardown ? 0 : 1

  filter {
    name   = "image-id"
    values = [local.image_id]
  }
}

locals {
  type     = module.cluster.type
  tags     = module.cluster.tags
  key_name = coalesce(var.existing_key_name, one(aws_key_pair.cluster[*].key_name))

  # What is destroyed needs no image, and must not fail for one that is gone; the provider asks for one anyway.
  image_id = var.image_id != "" ? var.image_id : var.teardown ? "ami-00000000" : one(data.aws_ssm_parameter.image[*].insecure_value)

  zones = sort(data.aws_ec2_instance_type_offerings.type.locations)
  zone  = var.availability_zone == "" ? try(local.zones[0], "") : var.availability_zone

  # One network interface for each network card. Some types have a first card without EFA.
  efa            = coalesce(var.efa, local.type.efa_interfaces > 0)
  first_efa_card = local.type.network_cards - local.type.efa_interfaces
  interfaces = [
    for card in range(local.efa ? local.type.network_cards : 1) : {
      card   = card
      device = card == 0 ? 0 : 1
      # A card after the first carries no IP traffic: efa-only takes no address of the subnet.
      type = !local.efa || card < local.first_efa_card ? "interface" : card == 0 ? "efa" : "efa-only"
    }
  ]

  # Service Quotas, "Running On-Demand ... instances", by the letters that the type begins with.
  family      = try(regex("^[a-z]+", var.instance_type), "?")
  quota_codes = { dl = "L-6E869C2A", p = "L-417A185B", g = "L-DB2E81BA", inf = "L-1945791B", trn = "L-2C3B7624" }
  vcpus       = coalesce(try(local.type.vcpus, 0), 0) * length(module.cluster.node_names)

  # A reservation or a block exists before this cluster's placement group does, and cannot be moved into it.
  placement_group = contains(["reservation", "capacity-block"], var.capacity) ? var.placement_group_name : coalesce(var.placement_group_name, aws_placement_group.cluster.name)

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

# The zone, as it was when the cluster was made: that AWS lists zones in another order is no reason to move it, but
# another availability_zone is.
resource "terraform_data" "zone" {
  input = local.zone

  lifecycle {
    ignore_changes = [input]

    precondition {
      condition     = var.teardown || !local.own_network || contains(local.zones, local.zone)
      error_message = local.zone == "" ? "region ${var.region} has no zone that offers ${var.instance_type}: take another region, or ask AWS whether your account may use the type." : "availability_zone is '${local.zone}', which does not offer ${var.instance_type}: use ${join(", ", local.zones)}, or leave it empty."
    }
  }
}

check "generation" {
  assert {
    condition     = try(local.type.gaudi_generation, 0) == null || try(local.type.gaudi_generation, 0) != 1
    error_message = "${var.instance_type} has first-generation Gaudi, which current SynapseAI releases no longer list: look at the vendor's support matrix before you pay for it."
  }
}

# AWS counts on-demand machines in vCPU by family, and gives most accounts none of the accelerated ones.
data "aws_servicequotas_service_quota" "vcpus" {
  count = var.check_quota && !var.teardown && var.capacity == "on-demand" && contains(keys(local.quota_codes), local.family) ? 1 : 0

  service_code = "ec2"
  quota_code   = local.quota_codes[local.family]
}

check "quota" {
  assert {
    condition     = alltrue([for quota in data.aws_servicequotas_service_quota.vcpus : quota.value >= local.vcpus])
    error_message = "Your quota of on-demand '${local.family}' machines in ${var.region} is ${try(data.aws_servicequotas_service_quota.vcpus[0].value, 0)} vCPU (${lookup(local.quota_codes, local.family, "?")}), but ${length(module.cluster.node_names)} x ${var.instance_type} have ${local.vcpus}: ask AWS for more in Service Quotas before you apply."
  }
}
