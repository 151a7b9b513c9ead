locals {
  nodes = [
    for name in module.cluster.node_names : {
      name        = name
      private_ip  = ibm_is_instance.node[name].primary_network_attachment[0].virtual_network_interface[0].primary_ip[0].address
      instance_id = ibm_is_instance.node[name].id
      zone        = local.zone
      market      = var.capacity
    }
  ]
  monitor = one([
    for machine in ibm_is_instance.monitor : {
      name        = module.cluster.monitor_name
      private_ip  = machine.primary_network_attachment[0].virtual_network_interface[0].primary_ip[0].address
      instance_id = machine.id
      zone        = local.zone
      type        = machine.profile
    }
  ])
}

module "inventory" {
  source = "../inventory"

  cloud             = "ibm"
  name              = var.name
  region            = var.region
  type              = module.cluster.type
  instance_type     = module.cluster.instance_type
  nodes             = local.nodes
  monitor           = local.monitor
  ssh_user          = var.ssh_user
  jump_host         = var.jump_host
  checkpoint_target = "cos://${ibm_cos_bucket.checkpoints.bucket_name}/${module.cluster.checkpoint_prefix}"
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

output "ansible_inventory" {
  description = "The inventory as YAML, for those who do without the inventory plugin: terraform output -raw ansible_inventory > hosts.yml."
  value       = module.inventory.ansible_inventory
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.inventory.cluster
}
