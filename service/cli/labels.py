"""The command line's own words, in three languages."""

from rules.findings import Severity
from rules.language import Text

SEVERITY = {
    Severity.CRITICAL: Text("CRITICAL", "CRÍTICO", "CRITICO"),
    Severity.HIGH: Text("HIGH", "ALTO", "ALTO"),
    Severity.MEDIUM: Text("MEDIUM", "MEDIO", "MEDIO"),
    Severity.LOW: Text("LOW", "BAJO", "BASSO"),
    Severity.INFO: Text("INFO", "INFO", "INFO"),
}

CLUSTER = Text("Cluster", "Clúster", "Cluster")
OBSERVED = Text("as of", "a fecha de", "situazione al")
NO_FINDINGS = Text(
    "No findings in what could be read.",
    "Ningún hallazgo en lo que se pudo leer.",
    "Nessun problema in ciò che è stato possibile leggere.",
)
ONE_FINDING = Text("1 finding", "1 hallazgo", "1 problema")
FINDINGS = Text("{n} findings", "{n} hallazgos", "{n} problemi")
IDLE_COST = Text(
    "Findings with a known price cost {hour}, up to {so_far} so far",
    "Los hallazgos con precio conocido cuestan {hour}, como máximo {so_far} hasta ahora",
    "I problemi con prezzo noto costano {hour}, finora al massimo {so_far}",
)
UNPRICED = Text(
    "no price is known for {n} more", "de {n} más no se conoce el precio", "di altri {n} il prezzo non è noto"
)
OBJECTS = Text("Objects", "Objetos", "Oggetti")
EVIDENCE = Text("Evidence", "Datos", "Dati")
COST = Text("Cost", "Coste", "Costo")
REMEDY = Text("Fix", "Solución", "Rimedio")
RULE = Text("Rule", "Regla", "Regola")
SO_FAR = Text("up to {money} so far", "como máximo {money} hasta ahora", "finora al massimo {money}")
BASIS = {
    "contract": Text("contract price", "precio de contrato", "prezzo di contratto"),
    "list": Text("list price", "precio de lista", "prezzo di listino"),
    "other_region": Text(
        "list price of another region", "precio de lista de otra región", "prezzo di listino di un'altra regione"
    ),
    "estimate": Text("estimate", "estimación", "stima"),
}
UNREADABLE = Text(
    "Could not be read, so unknown", "No se pudo leer; se desconoce", "Non è stato possibile leggere; non noto"
)
SKIPPED = Text(
    "Rules that could not judge, for lack of",
    "Reglas que no pudieron juzgar, por falta de",
    "Regole che non hanno potuto giudicare, per mancanza di",
)
FAILED = Text(
    "Rules that failed (a fault of gpu-advisor, or of a rule of your own)",
    "Reglas que fallaron (error de gpu-advisor o de una regla propia)",
    "Regole non riuscite (errore di gpu-advisor o di una tua regola)",
)
UNDECIDED = Text(
    "Could not be judged, for lack of facts",
    "No se pudo juzgar, por falta de datos",
    "Non è stato possibile giudicare, per mancanza di dati",
)
UNKNOWN_FACT = Text("{facts} unknown: {objects}", "{facts} sin conocer: {objects}", "{facts} non noto: {objects}")
EXEMPTED = Text(
    "Exempted, so not among the findings",
    "Exento: no figura entre los hallazgos",
    "Esentato, quindi non tra i problemi",
)
EXEMPTED_UNTIL = Text(
    "until {until}: {reason} ({by})", "hasta {until}: {reason} ({by})", "fino al {until}: {reason} ({by})"
)
EXEMPTION_TROUBLES = Text(
    "Exemptions that do not work", "Exenciones que no surten efecto", "Esenzioni che non hanno effetto"
)
EXEMPTION_PROBLEM = {
    "ended": Text("it ended on {until}", "venció el {until}", "è scaduta il {until}"),
    "no-reason": Text(
        "gpu-advisor.io/exempt-reason is missing",
        "falta gpu-advisor.io/exempt-reason",
        "manca gpu-advisor.io/exempt-reason",
    ),
    "no-end": Text(
        "gpu-advisor.io/exempt-until is missing",
        "falta gpu-advisor.io/exempt-until",
        "manca gpu-advisor.io/exempt-until",
    ),
    "end-unreadable": Text(
        "gpu-advisor.io/exempt-until is no date such as 2026-12-31",
        "gpu-advisor.io/exempt-until no es una fecha como 2026-12-31",
        "gpu-advisor.io/exempt-until non è una data come 2026-12-31",
    ),
    "no-such-rule": Text("no rule is called so", "ninguna regla se llama así", "nessuna regola si chiama così"),
}
DISABLED = Text("Switched off", "Desactivadas", "Disattivate")
USUALLY = Text("usually {severity}", "normalmente {severity}", "di norma {severity}")
REASON = {
    "forbidden": Text("forbidden", "prohibido", "vietato"),
    "not-found": Text("not found", "no encontrado", "non trovato"),
    "outside": Text(
        "only some namespaces are read", "solo se leen algunos namespaces", "si leggono solo alcuni namespace"
    ),
    "not-in-snapshot": Text("not in the snapshot", "no está en la instantánea", "assente nello snapshot"),
    "error": Text("error", "error", "errore"),
}
TAKE = Text("Take a fuller one with", "Toma una más completa con", "Fanne uno più completo con")
