output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = local.hosts
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = try(var.nodes[0].private_ip, null)
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value = {
    name              = var.name
    cloud             = var.cloud
    region            = var.region
    instance_type     = var.instance_type
    accelerator       = var.type.accelerator
    gaudi_generation  = var.type.gaudi_generation
    cards_per_node    = var.type.cards
    cluster_size      = var.type.cards * length(var.nodes)
    node_names        = var.nodes[*].name
    monitor           = try(var.monitor.name, null)
    checkpoint_target = var.checkpoint_target
    jump_host         = var.jump_host
    connection        = var.connection
    allowed_cidrs     = sort(var.allowed_cidrs)
    tags              = var.tags
    variables         = var.variables
  }
}
