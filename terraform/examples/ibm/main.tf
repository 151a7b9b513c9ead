# A node with eight Gaudi 3 on IBM Cloud inside a configuration of your own, with a way in from your address. Set IC_API_KEY.

terraform {
  required_version = ">= 1.9"

  required_providers {
    ibm = {
      source  = "IBM-Cloud/ibm"
      version = ">= 2.1, < 3"
    }
  }

  # For a team: a state with a lock, outside of the checkout. This state holds the key pair of the checkpoint bucket.
  # backend "s3" {
  #   bucket       = "my-states"
  #   key          = "gaudi/trial"
  #   region       = "us-east-1"
  #   use_lockfile = true # from Terraform 1.10 on
  # }
}

provider "ibm" {
  region = "us-east"
}

variable "ssh_public_key" {
  description = "Public key that may log in to the nodes, RSA or Ed25519."
  type        = string
}

variable "my_address" {
  description = "Your own public address, which alone may connect, such as 198.51.100.7."
  type        = string
}

module "cluster" {
  source = "../../modules/ibm"

  name              = "trial"
  region            = "us-east"
  cluster_size      = 8
  instance_type     = "gx3d-160x1792x8gaudi3"
  ssh_public_key    = var.ssh_public_key
  public_entry      = "monitor"
  allowed_cidrs     = ["${var.my_address}/32"]
  node_usd_per_hour = 60 # as you were quoted it: IBM publishes none
  max_hourly_usd    = 80
  ttl               = "12h"
  tags              = { team = "research" }
}

# What the inventory plugin gaudi3.scale.terraform reads.
output "cluster" {
  description = "What the cluster is, and how ssh gets there."
  value       = module.cluster.cluster
}

output "cluster_endpoints" {
  description = "Every host by name."
  value       = module.cluster.cluster_endpoints
}

output "checkpoint_environment" {
  description = "The key pair of the checkpoint bucket, for a file on the nodes that only root reads."
  value       = module.cluster.checkpoint_environment
  sensitive   = true
}
