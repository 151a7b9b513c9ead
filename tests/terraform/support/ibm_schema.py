"""What the IBM provider's resources take, written out of its documentation: ``python ibm_schema.py``.

There are no bindings of it on PyPI to extract from, so what terraform/ uses was read in website/docs of
IBM-Cloud/terraform-provider-ibm (MPL-2.0; pages of 1.80 to 1.87). ``!`` marks what is required, braces a block.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
RESOURCES = {
    "ibm_is_vpc": (
        "name! address_prefix_management classic_access default_network_acl_name default_security_group_name"
        " default_routing_table_name resource_group tags access_tags",
        "id crn default_security_group default_network_acl default_routing_table status subnets",
    ),
    "ibm_is_vpc_address_prefix": ("name! vpc! zone! cidr!", "id has_subnets"),
    "ibm_is_public_gateway": ("name! vpc! zone! floating_ip resource_group tags access_tags", "id status crn"),
    "ibm_is_subnet": (
        "name! vpc! zone! ipv4_cidr_block ip_version network_acl public_gateway resource_group routing_table tags"
        " total_ipv4_address_count",
        "id crn status available_ipv4_address_count",
    ),
    "ibm_is_security_group": ("vpc! name resource_group tags", "id crn rules"),
    "ibm_is_security_group_rule": (
        "group! direction! remote local ip_version name protocol port_min port_max code type icmp { type code }"
        " tcp { port_min port_max } udp { port_min port_max }",
        "id rule_id",
    ),
    "ibm_is_cluster_network": (
        "profile! zone! vpc! { id! } name resource_group subnet_prefixes { cidr! }",
        "id crn created_at lifecycle_state",
    ),
    "ibm_is_cluster_network_subnet": (
        "cluster_network_id! name ip_version ipv4_cidr_block total_ipv4_address_count",
        "id cluster_network_subnet_id lifecycle_state",
    ),
    "ibm_is_ssh_key": ("name! public_key! resource_group tags", "id crn fingerprint length type"),
    "ibm_is_flow_log": (
        "name! target! storage_bucket! active resource_group tags access_tags",
        "id crn created_at lifecycle_state vpc",
    ),
    "ibm_is_instance": (
        "name profile image vpc zone keys resource_group tags access_tags user_data placement_group volumes action"
        " dedicated_host dedicated_host_group instance_template default_trusted_profile_target"
        " default_trusted_profile_auto_link enable_secure_boot confidential_compute_mode total_volume_bandwidth"
        " availability_policy_host_failure force_action force_recovery_time auto_delete_volume"
        " metadata_service_enabled"
        " boot_volume { auto_delete_volume bandwidth encryption name size snapshot snapshot_crn volume_id tags }"
        " metadata_service { enabled protocol response_hop_limit }"
        " primary_network_interface { name subnet! security_groups primary_ipv4_address allow_ip_spoofing"
        " primary_ip { auto_delete address name reserved_ip } }"
        " primary_network_attachment { name! virtual_network_interface! { id allow_ip_spoofing auto_delete"
        " enable_infrastructure_nat name ips resource_group security_groups protocol_state_filtering_mode subnet"
        " primary_ip { address auto_delete name reserved_ip } } }"
        " cluster_network_attachments { name! cluster_network_interface! { id name primary_ip { address name id }"
        " subnet { id! } } }"
        " reservation_affinity { policy pool { id } }",
        "id crn status bandwidth disks gpu vcpu memory lifecycle_state volume_attachments",
    ),
    "ibm_resource_instance": (
        "name! service! plan! location! resource_group_id tags parameters service_endpoints",
        "id guid status crn resource_group_crn dashboard_url state",
    ),
    "ibm_cos_bucket": (
        "bucket_name! resource_instance_id! storage_class! cross_region_location region_location single_site_location"
        " endpoint_type allowed_ip force_delete key_protect hard_quota"
        " activity_tracking { read_data_events write_data_events activity_tracker_crn }"
        " metrics_monitoring { usage_metrics_enabled request_metrics_enabled metrics_monitoring_crn }"
        " archive_rule { rule_id enable! days! type! } expire_rule { rule_id enable! days prefix }"
        " object_versioning { enable } retention_rule { default! maximum! minimum! permanent }",
        "id crn s3_endpoint_private s3_endpoint_public s3_endpoint_direct",
    ),
    "ibm_iam_trusted_profile": ("name! description email", "id crn iam_id"),
    "ibm_iam_trusted_profile_policy": (
        "roles! profile_id iam_id description account_management rule_operator pattern transaction_id"
        " resources { service service_type resource_instance_id region resource_type resource resource_group_id"
        " attributes } resource_attributes { name! value! operator } resource_tags { name! value! operator }"
        " rule_conditions { key! operator! value! }",
        "id version",
    ),
    "ibm_iam_authorization_policy": (
        "roles! description source_service_account source_service_name target_service_name"
        " source_resource_instance_id target_resource_instance_id source_resource_type target_resource_type"
        " source_resource_group_id target_resource_group_id resource_attributes { name! value! operator }"
        " subject_attributes { name! value! operator }",
        "id version",
    ),
}
DATA = {
    "ibm_resource_group": ("name is_default", "id crn state"),
    "ibm_is_image": ("name identifier visibility", "id crn os status architecture checksum"),
}


def parse(words: list[str]) -> dict[str, Any]:
    """Names up to the closing brace."""
    found: dict[str, Any] = {}
    last = ""
    while words:
        word = words.pop(0)
        if word == "}":
            break
        if word == "{":
            found[last]["block"] = parse(words)
            continue
        last = word.rstrip("!")
        found[last] = {"required": word.endswith("!")}
    return found


def entry(arguments: str, attributes: str) -> dict[str, Any]:
    """A resource as the extracted schemas have it."""
    taken = parse(re.findall(r"[{}]|[\w!]+", arguments))
    return {"arguments": taken, "attributes": sorted({*taken, *attributes.split()})}


def main() -> None:
    """See the module."""
    schema = {
        "provider": "ibm",
        "version": "1.80 to 1.87",
        "source": "website/docs of IBM-Cloud/terraform-provider-ibm, written out by hand in support/ibm_schema.py",
        "licence": "MPL-2.0",
        "resource": {name: entry(*told) for name, told in sorted(RESOURCES.items())},
        "data": {name: entry(*told) for name, told in sorted(DATA.items())},
    }
    (HERE / "schemas" / "ibm.json").write_text(json.dumps(schema, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
