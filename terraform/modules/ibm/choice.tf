# What IBM Cloud knows of this account and region, looked up while planning: zones with the type, images, keys. None of it
# is looked up while everything is destroyed, so that nothing that is gone can stop that.

data "ibm_is_instance_profile" "node" {
  count = var.teardown ? 0 : 1

  name = module.cluster.instance_type

  lifecycle {
    postcondition {
      condition     = length(self.zones) > 0
      error_message = "region is '${var.region}', none of whose zones has ${var.instance_type} for this account: take another region, or ask IBM for access to the profile."
    }

    postcondition {
      condition     = length(self.zones) == 0 || var.zone == "" || contains(self.zones[*].name, var.zone)
      error_message = "zone is '${var.zone}', which does not have ${var.instance_type}: give ${join(" or ", sort(self.zones[*].name))}, or leave it empty."
    }
  }
}

data "ibm_is_subnet" "existing" {
  count = var.subnet_id == "" ? 0 : 1

  identifier = var.subnet_id

  lifecycle {
    postcondition {
      condition     = var.teardown || local.profile == null || contains(local.profile_zones, self.zone)
      error_message = "subnet_id is '${var.subnet_id}' in zone ${self.zone}, which does not have ${var.instance_type}: give a subnet in ${join(" or ", local.profile_zones)}."
    }
  }
}

locals {
  profile       = one(data.ibm_is_instance_profile.node)
  profile_zones = sort(try(local.profile.zones[*].name, []))
  subnet_zone   = one(data.ibm_is_subnet.existing[*].zone)
  zone          = var.zone != "" ? var.zone : local.subnet_zone != null ? local.subnet_zone : terraform_data.zone.input
}

# The zone that was chosen when the cluster was made: another one would replace every machine.
resource "terraform_data" "zone" {
  input = try(coalesce(var.zone, local.subnet_zone, try(local.profile_zones[0], "")), "${var.region}-1")

  lifecycle {
    ignore_changes = [input]
  }
}

data "ibm_is_images" "node" {
  count = var.catalog_offering == null && !var.teardown ? 1 : 0

  name       = var.image == "" ? null : var.image
  status     = var.image == "" ? "available" : null
  visibility = var.image == "" ? "public" : null

  lifecycle {
    postcondition {
      condition     = var.image != "" || anytrue([for image in self.images : can(regex(var.image_pattern, image.name))])
      error_message = "image_pattern is '${var.image_pattern}', which no available image in ${var.region} matches: look with 'ibmcloud is images --status available', or name one as image."
    }

    postcondition {
      condition     = var.image == "" || length(self.images) > 0
      error_message = "image is '${var.image}', which ${var.region} does not have: leave it empty for the newest of image_pattern, or look with 'ibmcloud is images'."
    }

    postcondition {
      condition     = var.image == "" || alltrue([for image in self.images : contains(["available", "deprecated"], image.status)])
      error_message = "image is '${var.image}', which is ${join(", ", self.images[*].status)}, so that no machine can be made of it: leave image empty for the newest of image_pattern."
    }
  }
}

locals {
  # Names end in numbers: with these made equally long, the newest is the last in the order of the alphabet.
  images = {
    for image in try(data.ibm_is_images.node[0].images, []) :
    join("-", [for part in split("-", image.name) : can(tonumber(part)) ? format("%06d", tonumber(part)) : part]) => image...
    if var.image != "" || can(regex(var.image_pattern, image.name))
  }
  image      = try(local.images[reverse(sort(keys(local.images)))[0]][0], null)
  image_name = try(local.image.name, "")

  # cloud-user and vpcuser: IBM's documents of its Red Hat images.
  users = { "^(ibm-ubuntu|gaudi3-os-u)" = "ubuntu", "^ibm-redhat-ai" = "cloud-user", "^ibm-redhat-[0-9]" = "vpcuser" }
  ssh_user = var.ssh_user != "" ? var.ssh_user : local.image == null ? "ubuntu" : try(
    one([for pattern, user in local.users : user if can(regex(pattern, local.image_name))]), null
  )
}

locals {
  own_key = var.ssh_key_name == "" && length(var.ssh_key_ids) == 0
  key_ids = concat(ibm_is_ssh_key.cluster[*].id, data.ibm_is_ssh_key.existing[*].id, var.ssh_key_ids)
  # A key as IBM gives it back: without its comment.
  key_body = join(" ", slice(concat(split(" ", module.cluster.ssh_public_key), ["", ""]), 0, 2))
}

data "ibm_is_ssh_key" "existing" {
  count = var.ssh_key_name == "" || var.teardown ? 0 : 1

  name = var.ssh_key_name
}

data "ibm_is_ssh_keys" "all" {
  count = local.own_key && !var.teardown ? 1 : 0
}

resource "ibm_is_ssh_key" "cluster" {
  count = local.own_key ? 1 : 0

  name           = var.name
  public_key     = module.cluster.ssh_public_key
  type           = startswith(module.cluster.ssh_public_key, "ssh-rsa ") ? "rsa" : "ed25519"
  resource_group = local.group
  tags           = local.tags

  lifecycle {
    # IBM takes a key once in a region, and would say so when half of the cluster is made.
    precondition {
      condition     = length([for key in try(data.ibm_is_ssh_keys.all[0].keys, []) : key if key.public_key == local.key_body && key.name != var.name]) == 0
      error_message = "ssh_public_key is in this account already, where IBM takes a key once in a region: set ssh_key_name = \"${join(" or ", [for key in try(data.ibm_is_ssh_keys.all[0].keys, []) : key.name if key.public_key == local.key_body])}\" instead."
    }
  }
}

# IBM has no service that says what an account's quota is: the plan names the usual one.
locals {
  usual_quota = { vcpus = 200, gpus = 16, storage_gb = 18000 }
  wanted = {
    vcpus      = length(module.cluster.node_names) * coalesce(try(module.cluster.type.vcpus, 0), 0)
    gpus       = length(module.cluster.node_names) * coalesce(try(module.cluster.type.cards, 0), 0)
    storage_gb = length(module.cluster.node_names) * coalesce(try(module.cluster.type.nvme_count * module.cluster.type.nvme_gb, 0), 0)
  }
}

check "quota" {
  assert {
    condition     = var.teardown || alltrue([for unit, amount in local.wanted : amount <= local.usual_quota[unit]])
    error_message = "These nodes need ${local.wanted.vcpus} vCPU, ${local.wanted.gpus} GPUs and ${local.wanted.storage_gb} GB of instance storage, and a new account has ${local.usual_quota.vcpus}, ${local.usual_quota.gpus} and ${local.usual_quota.storage_gb} per region: if yours was not raised, IBM answers over_quota, so ask its support for more first."
  }
}

check "collectives" {
  assert {
    condition     = var.teardown || length(module.cluster.node_names) < 2 || var.cluster_network_profile != null
    error_message = "These ${length(module.cluster.node_names)} nodes reach each other over the VPC network only, with at most 32 Gbit/s for an interface: IBM says of ${var.instance_type} that it has no cluster network."
  }
}
