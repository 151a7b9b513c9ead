locals {
  autoscaled = var.autoscaling ? zipmap(data.aws_instances.autoscaled[0].ids, data.aws_instances.autoscaled[0].private_ips) : {}
  # As AWS says, since a later change of capacity changes no running node. It has no word for on demand.
  markets_of_nodes = {
    for name, node in aws_instance.node : name => contains(["spot", "capacity-block"], coalesce(node.instance_lifecycle, "none")) ? node.instance_lifecycle : (
      try(node.capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id, "") == "" ? "on-demand" : "reservation"
    )
  }
  # Where a part is destroyed after an apply that failed, parts are missing.
  nodes = var.autoscaling ? [
    for id in sort(keys(local.autoscaled)) : {
      name        = "${var.name}-${trimprefix(id, "i-")}"
      private_ip  = local.autoscaled[id]
      public_ip   = null
      instance_id = id
      zone        = local.subnet_zone
      market      = contains(data.aws_instances.spot[0].ids, id) ? "spot" : var.capacity == "spot" ? "on-demand" : var.capacity
      connect_to  = var.connection == "ssm" ? id : local.autoscaled[id]
    }
    ] : [
    for name in module.cluster.node_names : {
      name        = name
      private_ip  = aws_instance.node[name].private_ip
      public_ip   = aws_instance.node[name].public_ip == "" ? null : aws_instance.node[name].public_ip
      instance_id = aws_instance.node[name].id
      zone        = aws_instance.node[name].availability_zone
      market      = local.markets_of_nodes[name]
      type        = aws_instance.node[name].instance_type
      connect_to  = var.connection == "ssm" ? aws_instance.node[name].id : aws_instance.node[name].private_ip
    } if contains(keys(aws_instance.node), name)
  ]
  monitor = one([
    for machine in aws_instance.monitor : {
      name        = module.cluster.monitor_name
      private_ip  = machine.private_ip
      public_ip   = var.public_entry == "monitor" ? one(aws_eip.entry[*].public_ip) : machine.public_ip == "" ? null : machine.public_ip
      instance_id = machine.id
      zone        = machine.availability_zone
      type        = machine.instance_type
      connect_to  = var.connection == "ssm" ? machine.id : var.public_entry == "monitor" ? one(aws_eip.entry[*].public_ip) : machine.private_ip
    }
  ])
}

module "inventory" {
  source = "../inventory"

  cloud             = "aws"
  name              = var.name
  region            = var.region
  type              = module.cluster.type
  instance_type     = module.cluster.instance_type
  nodes             = local.nodes
  monitor           = local.monitor
  ssh_user          = var.ssh_user
  jump_host         = var.public_entry == "monitor" ? try("${var.ssh_user}@${aws_eip.entry[0].public_ip}", "") : var.jump_host
  connection        = var.connection
  checkpoint_target = "s3://${local.bucket}/${module.cluster.checkpoint_prefix}"
  tags              = local.tags
  allowed_cidrs     = module.cluster.allowed_cidrs
}

output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = module.inventory.cluster_endpoints
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = module.inventory.master_ip
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.inventory.cluster
}
