"""Pages of this app, below ``/ui/``."""

from django.urls import path

from cachecontrol.web import (
    evictions,
    figures,
    fleet,
    operating,
    placement,
    policies,
    proposing,
    quotas,
    registering,
)

_NODE = "fleet/nodes/<str:node>"
_POOL = "fleet/policies/<str:base_model>"
_POLICY = f"{_POOL}/<int:number>"
_VERSION = "tenants/<str:tenant>/adapters/<str:adapter>/versions/<str:version>"

urlpatterns = [
    path("fleet", fleet.FleetPage.as_view(), name="fleet"),
    path("fleet/register", registering.RegisterNodePage.as_view(), name="node_new"),
    path(_NODE, fleet.NodePage.as_view(), name="node"),
    path(f"{_NODE}/drain", operating.DrainPage.as_view(), name="node_drain"),
    path(f"{_NODE}/resume", operating.ResumePage.as_view(), name="node_resume"),
    path(f"{_NODE}/cordon", operating.CordonPage.as_view(), name="node_cordon"),
    path(f"{_NODE}/uncordon", operating.UncordonPage.as_view(), name="node_uncordon"),
    path(f"{_NODE}/recycle", operating.RecyclePage.as_view(), name="node_recycle"),
    path(f"{_NODE}/token", registering.RotateNodeTokenPage.as_view(), name="node_token"),
    path("fleet/evictions", evictions.EvictionsPage.as_view(), name="evictions"),
    path("fleet/figures", figures.FiguresPage.as_view(), name="figures"),
    path("fleet/quotas", quotas.QuotasPage.as_view(), name="quotas"),
    path("fleet/quotas/<str:base_model>", quotas.PoolQuotasPage.as_view(), name="pool_quotas"),
    path("fleet/policies", policies.PoliciesPage.as_view(), name="policies"),
    path(_POOL, policies.PoolPoliciesPage.as_view(), name="pool_policies"),
    path(f"{_POOL}/propose", proposing.ProposePolicyPage.as_view(), name="policy_new"),
    path(_POLICY, policies.PolicyPage.as_view(), name="policy"),
    path(f"{_POLICY}/approve", proposing.ApprovePolicyPage.as_view(), name="policy_approve"),
    path(f"{_POLICY}/decline", proposing.DeclinePolicyPage.as_view(), name="policy_decline"),
    path(f"{_POLICY}/roll-back", proposing.RollBackPolicyPage.as_view(), name="policy_roll_back"),
    path("tenants/<str:tenant>/quotas", quotas.TenantQuotasPage.as_view(), name="tenant_quotas"),
    path("tenants/<str:tenant>/figures", figures.TenantFiguresPage.as_view(), name="tenant_figures"),
    path(f"{_VERSION}/placement", placement.PlacementPage.as_view(), name="placement"),
    path(f"{_VERSION}/warm", placement.WarmPage.as_view(), name="version_warm"),
    path(f"{_VERSION}/evict/<str:node>", placement.EvictPage.as_view(), name="version_evict"),
]
