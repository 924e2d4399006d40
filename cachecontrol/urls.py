from django.urls import path

from cachecontrol.api import agents, nodes

urlpatterns = [
    path("nodes", nodes.NodesView.as_view()),
    path("nodes/<str:node>", nodes.NodeView.as_view()),
    path("nodes/<str:node>/rotate-token", nodes.RotateTokenView.as_view()),
    path("nodes/<str:node>/warm", nodes.WarmView.as_view()),
    path("nodes/<str:node>/evict", nodes.EvictView.as_view()),
    path("node/report", agents.ReportView.as_view()),
    path("node/outcomes", agents.OutcomeView.as_view()),
    path("demand", agents.DemandView.as_view()),
]
