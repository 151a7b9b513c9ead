# The alternative to nodes that Terraform counts: a group that replaces what is lost by itself.

resource "aws_autoscaling_group" "nodes" {
  count = var.autoscaling ? 1 : 0

  name_prefix               = "${var.name}-"
  min_size                  = length(module.cluster.node_names)
  max_size                  = length(module.cluster.node_names)
  desired_capacity          = length(module.cluster.node_names)
  vpc_zone_identifier       = [local.subnet_id]
  health_check_type         = "EC2"
  health_check_grace_period = 900
  wait_for_capacity_timeout = "30m"
  protect_from_scale_in     = false

  dynamic "launch_template" {
    for_each = var.capacity == "spot" ? [] : [aws_launch_template.node[var.capacity]]

    content {
      id      = launch_template.value.id
      version = launch_template.value.latest_version
    }
  }

  dynamic "mixed_instances_policy" {
    for_each = var.capacity == "spot" ? [aws_launch_template.node["on-demand"]] : []

    content {
      instances_distribution {
        on_demand_base_capacity                  = var.on_demand_nodes
        on_demand_percentage_above_base_capacity = 0
        spot_allocation_strategy                 = "price-capacity-optimized"
        spot_max_price                           = var.spot_max_price == null ? "" : tostring(var.spot_max_price)
      }

      launch_template {
        launch_template_specification {
          launch_template_id = mixed_instances_policy.value.id
          version            = mixed_instances_policy.value.latest_version
        }
      }
    }
  }

  dynamic "tag" {
    for_each = merge(local.tags, { Name = var.name })

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  depends_on = [
    terraform_data.intent,
    aws_route.nodes,
    aws_iam_role_policy.session,
    aws_vpc_security_group_egress_rule.self,
    aws_vpc_security_group_ingress_rule.self,
  ]
}

# Who is in the group now. After the group has replaced a node, 'terraform apply -refresh-only' brings the outputs up to
# date.
data "aws_instances" "autoscaled" {
  count = var.autoscaling ? 1 : 0

  instance_state_names = ["pending", "running"]

  filter {
    name   = "tag:aws:autoscaling:groupName"
    values = [aws_autoscaling_group.nodes[0].name]
  }
}

# Which of them are on the spot market: the group buys its first nodes on demand, and keeps others that were bought before
# capacity changed.
data "aws_instances" "spot" {
  count = var.autoscaling ? 1 : 0

  instance_state_names = ["pending", "running"]

  filter {
    name   = "tag:aws:autoscaling:groupName"
    values = [aws_autoscaling_group.nodes[0].name]
  }

  filter {
    name   = "instance-lifecycle"
    values = ["spot"]
  }
}
