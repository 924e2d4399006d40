from django.urls import path

from cachecontrol.api import agents, demand, evictions, lifecycle, nodes, policies, rules, usage

urlpatterns = [
    path("nodes", nodes.NodesView.as_view()),
    path("nodes/<str:node>", nodes.NodeView.as_view()),
    path("nodes/<str:node>/rotate-token", nodes.RotateTokenView.as_view()),
    path("nodes/<str:node>/cordon", lifecycle.CordonView.as_view()),
    path("nodes/<str:node>/uncordon", lifecycle.UncordonView.as_view()),
    path("nodes/<str:node>/drain", lifecycle.DrainView.as_view()),
    path("nodes/<str:node>/resume", lifecycle.ResumeView.as_view()),
    path("nodes/<str:node>/recycle", lifecycle.RecycleView.as_view()),
    path("nodes/<str:node>/warm", nodes.WarmView.as_view()),
    path("nodes/<str:node>/evict", nodes.EvictView.as_view()),
    path("node/report", agents.ReportView.as_view()),
    path("node/outcomes", agents.OutcomeView.as_view()),
    path("evictions", evictions.EvictionsView.as_view()),
    path(
        "tenants/<str:tenant>/adapters/<str:adapter>/versions/<str:version>/placement",
        evictions.PlacementView.as_view(),
    ),
    path("tenants/<str:tenant>/usage", usage.UsageView.as_view()),
    path("request-trace", usage.TraceView.as_view()),
    path("demand", demand.DemandView.as_view()),
    path("base-models/<str:base_model>/cache-policies", policies.CachePoliciesView.as_view()),
    path("base-models/<str:base_model>/cache-policies/<int:number>", policies.CachePolicyView.as_view()),
    path("base-models/<str:base_model>/cache-policies/<int:number>/diff", policies.CachePolicyDiffView.as_view()),
    path("base-models/<str:base_model>/cache-policies/<int:number>/approve", policies.ApprovePolicyView.as_view()),
    path("base-models/<str:base_model>/cache-policies/<int:number>/decline", policies.DeclinePolicyView.as_view()),
    path("base-models/<str:base_model>/cache-policy", policies.PolicyInForceView.as_view()),
    path("base-models/<str:base_model>/cache-policy/roll-back", policies.RollBackPolicyView.as_view()),
    path("base-models/<str:base_model>/cache-quotas", policies.CacheQuotasView.as_view()),
    path("tenants/<str:tenant>/cache-quota", policies.TenantQuotaView.as_view()),
    path("tenants/<str:tenant>/serving-rules", rules.ServingRulesView.as_view()),
]
