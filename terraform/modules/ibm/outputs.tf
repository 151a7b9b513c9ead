locals {
  # Where a part is destroyed after an apply that failed, parts are missing.
  nodes = [
    for name in module.cluster.node_names : {
      name        = name
      private_ip  = ibm_is_instance.node[name].primary_network_attachment[0].virtual_network_interface[0].primary_ip[0].address
      instance_id = ibm_is_instance.node[name].id
      zone        = local.zone
      market      = var.capacity
    } if contains(keys(ibm_is_instance.node), name)
  ]
  monitor = one([
    for machine in ibm_is_instance.monitor : {
      name        = module.cluster.monitor_name
      private_ip  = machine.primary_network_attachment[0].virtual_network_interface[0].primary_ip[0].address
      instance_id = machine.id
      public_ip   = one(ibm_is_floating_ip.entry[*].address)
      connect_to  = one(ibm_is_floating_ip.entry[*].address)
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
  ssh_user          = local.ssh_user
  jump_host         = var.public_entry == "monitor" ? try("${local.ssh_user}@${ibm_is_floating_ip.entry[0].address}", "") : var.jump_host
  checkpoint_target = "s3://${ibm_cos_bucket.checkpoints.bucket_name}/${module.cluster.checkpoint_prefix}"
  tags              = module.cluster.tags
  allowed_cidrs     = module.cluster.allowed_cidrs

  # The cards' own ports lead nowhere in a virtual machine. The direct endpoint is that of machines in a VPC.
  variables = merge(
    { gaudi_checkpoint_endpoint = "https://${ibm_cos_bucket.checkpoints.s3_endpoint_direct}" },
    var.cluster_network_profile == null ? { fabric_kind = "host_tcp" } : {},
  )
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

output "checkpoint_environment" {
  description = "The key pair for the bucket as a file of environment variables, for a file of mode 0600 on the nodes (docs/clouds/ibm.md); empty with checkpoint_credentials = none."
  sensitive   = true
  value = local.hmac ? try(join("\n", [
    "AWS_ACCESS_KEY_ID=${ibm_resource_key.checkpoints[0].credentials["cos_hmac_keys.access_key_id"]}",
    "AWS_SECRET_ACCESS_KEY=${ibm_resource_key.checkpoints[0].credentials["cos_hmac_keys.secret_access_key"]}",
    "",
  ]), "") : ""
}
