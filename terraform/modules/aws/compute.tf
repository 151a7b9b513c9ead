# The machines. A running node is never replaced by the way: what would replace it (a newer image, a newer template) is
# left alone until 'terraform apply -replace' names the node.

resource "aws_key_pair" "cluster" {
  count = var.existing_key_name == "" ? 1 : 0

  key_name_prefix = "${var.name}-"
  public_key      = module.cluster.ssh_public_key
  tags            = local.tags
}

resource "aws_placement_group" "cluster" {
  name     = var.name
  strategy = "cluster"
  tags     = local.tags
}

resource "aws_launch_template" "node" {
  for_each = toset(local.markets)

  name_prefix            = "${var.name}-${each.key}-"
  update_default_version = true
  instance_type          = module.cluster.instance_type
  key_name               = local.key_name
  ebs_optimized          = true

  # A machine that powers itself off at the end of its time is to cost nothing from then on.
  instance_initiated_shutdown_behavior = module.cluster.ends_itself ? "terminate" : null

  image_id  = var.autoscaling ? local.image_id : null
  user_data = var.autoscaling ? base64encode(module.cluster.user_data) : null
  tags      = local.tags

  iam_instance_profile {
    arn = aws_iam_instance_profile.node.arn
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
    instance_metadata_tags      = "disabled"
  }

  monitoring {
    enabled = true
  }

  dynamic "placement" {
    for_each = local.placement_group == "" ? [] : [local.placement_group]

    content {
      group_name = placement.value
    }
  }

  block_device_mappings {
    # The image's root volume, by the image's own name of it: under any other name it would be a second disk.
    device_name = coalesce(one(data.aws_ami.node[*].root_device_name), "/dev/sda1")

    ebs {
      volume_type           = "gp3"
      volume_size           = module.cluster.root_volume_gb
      encrypted             = true
      kms_key_id            = var.volume_kms_key_arn
      delete_on_termination = true
    }
  }

  dynamic "network_interfaces" {
    for_each = local.interfaces

    content {
      description           = "card ${network_interfaces.value.card}"
      network_card_index    = network_interfaces.value.card
      device_index          = network_interfaces.value.device
      interface_type        = network_interfaces.value.type
      subnet_id             = var.autoscaling ? null : local.subnet_id
      security_groups       = [aws_security_group.nodes.id]
      delete_on_termination = true
      # AWS takes this with one interface only; with several there is no public address anyway.
      associate_public_ip_address = length(local.interfaces) == 1 ? "false" : null
    }
  }

  dynamic "instance_market_options" {
    for_each = contains(["spot", "capacity-block"], each.key) ? [each.key] : []

    content {
      market_type = instance_market_options.value

      dynamic "spot_options" {
        for_each = instance_market_options.value == "spot" ? [var.spot_max_price] : []

        content {
          spot_instance_type             = "one-time"
          instance_interruption_behavior = "terminate"
          max_price                      = spot_options.value
        }
      }
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = contains(["reservation", "capacity-block"], each.key) ? [var.capacity_reservation_id] : []

    content {
      capacity_reservation_target {
        capacity_reservation_id = capacity_reservation_specification.value
      }
    }
  }

  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume", "network-interface"])

    content {
      resource_type = tag_specifications.value
      tags          = local.tags
    }
  }
}

resource "aws_instance" "node" {
  #checkov:skip=CKV_AWS_8:the launch template encrypts the volumes
  #checkov:skip=CKV_AWS_79:the launch template demands IMDSv2
  #checkov:skip=CKV_AWS_126:the launch template switches detailed monitoring on
  #checkov:skip=CKV_AWS_135:the launch template says EBS optimised
  #checkov:skip=CKV2_AWS_41:the launch template has the instance profile
  for_each = local.fixed_nodes

  ami       = local.image_id
  user_data = module.cluster.user_data
  tags      = merge(local.tags, { Name = each.key })

  launch_template {
    id      = aws_launch_template.node[each.value.market].id
    version = aws_launch_template.node[each.value.market].latest_version
  }

  lifecycle {
    ignore_changes       = [ami, user_data, launch_template]
    replace_triggered_by = [terraform_data.subnet]
  }

  # The rules are there before the machine talks, and go after it.
  depends_on = [
    terraform_data.intent,
    aws_route.nodes,
    aws_iam_role_policy.session,
    aws_vpc_security_group_egress_rule.self,
    aws_vpc_security_group_ingress_rule.self,
  ]
}

# What a node was made with, as its launch template said it. Not all of it can be read from the machine, and none of it
# changes while the machine runs.
resource "terraform_data" "node" {
  for_each = local.fixed_nodes

  input            = local.asked[each.key]
  triggers_replace = aws_instance.node[each.key].id

  lifecycle {
    ignore_changes = [input]
  }
}

locals {
  asked = {
    for name, node in local.fixed_nodes : name => { instance_type = var.instance_type, capacity = node.market, efa = local.efa }
  }
  other_nodes = {
    for name, node in terraform_data.node : name => join(", ", [
      for what, value in node.input : "${what} ${value}, not ${local.asked[name][what]}" if value != local.asked[name][what]
    ])
  }
}

check "running_nodes" {
  assert {
    condition     = var.teardown || alltrue([for difference in values(local.other_nodes) : difference == ""])
    error_message = "Running nodes are not what is asked for, and stay as they are (${join("; ", [for name, difference in local.other_nodes : "${name} has ${difference}" if difference != ""])}): give what they have, or replace each of them with 'terraform apply -replace', which ends what runs there."
  }
}

resource "aws_instance" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  ami                    = local.image_id
  instance_type          = var.monitor_instance_type
  subnet_id              = var.public_entry == "monitor" ? aws_subnet.gateway[0].id : local.subnet_id
  vpc_security_group_ids = aws_security_group.monitor[*].id
  user_data              = module.cluster.monitor_user_data
  key_name               = local.key_name
  iam_instance_profile   = aws_iam_instance_profile.monitor[0].name
  ebs_optimized          = true
  monitoring             = true
  tags                   = merge(local.tags, { Name = module.cluster.monitor_name })

  instance_initiated_shutdown_behavior = var.ttl == "" ? null : "terminate"

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = module.cluster.root_volume_gb
    encrypted   = true
    kms_key_id  = var.volume_kms_key_arn
  }

  lifecycle {
    ignore_changes = [ami, user_data]
  }

  depends_on = [terraform_data.intent, aws_route.nodes]
}

# The one public address of the cluster, where it is wanted: the way in from outside.
resource "aws_eip" "entry" {
  count = var.public_entry == "monitor" ? 1 : 0

  domain   = "vpc"
  instance = aws_instance.monitor[0].id
  tags     = merge(local.tags, { Name = "${var.name}-entry" })

  depends_on = [aws_internet_gateway.cluster, aws_route.gateway]
}
