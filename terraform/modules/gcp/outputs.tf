locals {
  # Where a part is destroyed after an apply that failed, parts are missing.
  nodes = [
    for name in module.cluster.node_names : {
      name        = name
      private_ip  = google_compute_instance.node[name].network_interface[0].network_ip
      instance_id = google_compute_instance.node[name].instance_id
      zone        = local.zone
      market      = var.capacity
    } if contains(keys(google_compute_instance.node), name)
  ]
  monitor = one([
    for machine in google_compute_instance.monitor : {
      name        = module.cluster.monitor_name
      private_ip  = machine.network_interface[0].network_ip
      instance_id = machine.instance_id
      zone        = local.zone
      type        = machine.machine_type
    }
  ])
}

module "inventory" {
  source = "../inventory"

  cloud             = "gcp"
  name              = var.name
  region            = var.region
  type              = module.cluster.type
  instance_type     = module.cluster.instance_type
  nodes             = local.nodes
  monitor           = local.monitor
  ssh_user          = var.ssh_user
  jump_host         = var.jump_host
  checkpoint_target = "gs://${google_storage_bucket.checkpoints.name}/${module.cluster.checkpoint_prefix}"
  tags              = module.cluster.tags
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
