"""``/``: what there is to try, for whoever opens the address."""

from typing import Any

from litestar import MediaType, Request, get

TEXT = """gpu-advisor

Ask (English, Spanish or Italian)
  curl -s {base}/v1/ask -d '{{"text": "Can I run more than one workload per GPU?"}}'
  curl -s {base}/v1/ask -d '{{"text": "¿Puedo ejecutar más de una carga por GPU?"}}'
  curl -s {base}/v1/ask -d '{{"text": "Posso eseguire più di un carico di lavoro per GPU?"}}'

Check
  curl -s {base}/v1/compat -d '{{"driver": "535.183.01", "image": "nvidia/cuda:12.8.1-base-ubuntu22.04"}}'

Look
  {base}/v1/clusters                      connected clusters and their state
  {base}/v1/findings?state=open           what is wrong now; add &lang=es or &lang=it
  {base}/v1/rules                         what is checked, and why

Do
  curl -s -X POST {base}/v1/clusters/NAME/audits   audit a cluster now

For machines
  {base}/schema/openapi.json              OpenAPI document (also openapi.yaml)
  {base}/health/live  /health/ready       probes
  {base}/metrics                          Prometheus metrics
"""


@get("/", media_type=MediaType.TEXT, include_in_schema=False, sync_to_thread=False)
def home(request: Request[Any, Any, Any]) -> str:
    """What there is to try."""
    return TEXT.format(base=str(request.base_url).rstrip("/"))
