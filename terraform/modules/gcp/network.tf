# Machines have private addresses only and reach out through Cloud NAT.

resource "google_compute_network" "cluster" {
  name                    = var.name
  project                 = local.project
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "nodes" {
  name                     = "${var.name}-nodes"
  project                  = local.project
  region                   = var.region
  network                  = google_compute_network.cluster.id
  ip_cidr_range            = module.cluster.node_subnet_cidr
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.5
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

resource "google_compute_router" "cluster" {
  name    = var.name
  project = local.project
  region  = var.region
  network = google_compute_network.cluster.id
}

resource "google_compute_router_nat" "cluster" {
  name                               = var.name
  project                            = local.project
  region                             = var.region
  router                             = google_compute_router.cluster.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"
}

resource "google_compute_firewall" "self" {
  name        = "${var.name}-self"
  project     = local.project
  network     = google_compute_network.cluster.name
  description = "Everything among the nodes themselves"
  direction   = "INGRESS"
  source_tags = [var.name]
  target_tags = [var.name]

  allow {
    protocol = "tcp"
  }

  allow {
    protocol = "udp"
  }

  allow {
    protocol = "icmp"
  }
}

resource "google_compute_firewall" "admitted" {
  count = length(module.cluster.allowed_cidrs) > 0 ? 1 : 0

  name          = "${var.name}-admitted"
  project       = local.project
  network       = google_compute_network.cluster.name
  description   = "SSH and the monitoring pages, for allowed_cidrs"
  direction     = "INGRESS"
  source_ranges = module.cluster.allowed_cidrs
  target_tags   = [var.name]

  allow {
    protocol = "tcp"
    ports    = ["22", "3000", "9090", "9093", "9109"]
  }
}
