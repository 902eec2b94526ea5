"""Words of the commands about providers and prices, in three languages."""

from rules.language import Text

PROVIDER = Text("Provider", "Proveedor", "Provider")
KUBERNETES = Text("Kubernetes", "Kubernetes", "Kubernetes")
PER_GPU = Text("per GPU·h", "por GPU·h", "per GPU·h")
TOTAL = Text("total/h", "total/h", "totale/h")
MONTH = Text("per month", "al mes", "al mese")
PURCHASE = Text("how", "modo", "modo")
MACHINE = Text("machine", "máquina", "macchina")
GPUS = Text("GPUs", "GPU", "GPU")
REGION = Text("region", "región", "regione")
AGE = Text("price of", "precio del", "prezzo del")
UNKNOWN = Text("not documented", "sin documentar", "non documentato")
MODE = {
    "managed": Text("managed", "gestionado", "gestito"),
    "own": Text("own cluster", "clúster propio", "cluster proprio"),
    "both": Text("managed or own", "gestionado o propio", "gestito o proprio"),
    "none": Text("none", "no ofrece", "assente"),
    None: Text("?", "?", "?"),
}
FOUND = Text(
    "{found} of {all} providers, {ruled_out} ruled out; {unlisted} more show no such machine in any list, which proves "
    "nothing.",
    "{found} de {all} proveedores, {ruled_out} descartados; otros {unlisted} no muestran una máquina así en ninguna "
    "lista, lo que no prueba nada.",
    "{found} provider su {all}, {ruled_out} esclusi; altri {unlisted} non mostrano una macchina del genere in nessun "
    "listino, il che non prova nulla.",
)
NO_DATA = Text(
    "Nothing is known of any provider on {names}: ask before you commit.",
    "No se sabe nada de ningún proveedor sobre {names}: pregunta antes de comprometerte.",
    "Di nessun provider si sa nulla su {names}: chiedi prima di impegnarti.",
)
DATES = Text(
    "Prices are from {oldest} to {newest}; those of different dates are not quite comparable. Control planes, disks, "
    "traffic and taxes are extra.",
    "Los precios son de entre {oldest} y {newest}; los de fechas distintas no son del todo comparables. El plano de "
    "control, los discos, el tráfico y los impuestos van aparte.",
    "I prezzi vanno dal {oldest} al {newest}; quelli di date diverse non sono del tutto confrontabili. Control plane, "
    "dischi, traffico e imposte sono a parte.",
)
RATE = Text(
    "Euro at {rate} US dollars ({source}, {date}).",
    "Euros a {rate} dólares ({source}, {date}).",
    "Euro a {rate} dollari ({source}, {date}).",
)
DAYS_OLD = Text("{date}, {days} d", "{date}, {days} d", "{date}, {days} g")
NO_DATE = Text("no date", "sin fecha", "senza data")
READ = Text("undated, read {date}", "sin fecha, leído {date}", "senza data, letto {date}")
NOTHING = Text("Nothing fits.", "Nada coincide.", "Nessun risultato.")
OFFERS_FOUND = Text("{shown} of {found} offers", "{shown} de {found} ofertas", "{shown} offerte su {found}")
CHEAPEST = Text("Cheapest offers", "Ofertas más baratas", "Offerte più economiche")
FILTERS = Text("Filters", "Filtros", "Filtri")
FACT = Text("Fact", "Dato", "Dato")
SOURCES = Text("Sources", "Fuentes", "Fonti")
ORIGIN = Text("origin", "origen", "origine")
ORIGINS = {
    "bundled": Text("bundled", "incluido", "incluso"),
    "fetched": Text("fetched", "descargado", "scaricato"),
    "private": Text("private", "privado", "privato"),
    "none": Text("none", "ninguno", "nessuna"),
}
ROWS = Text("offers", "ofertas", "offerte")
PRICES_OF = Text("prices of", "precios de", "prezzi del")
CHECKED = Text("checked", "comprobado", "verificato")
LATEST = Text("latest attempt", "último intento", "ultimo tentativo")
OUTCOME = {
    "updated": Text("updated", "actualizado", "aggiornato"),
    "unchanged": Text("unchanged", "sin cambios", "invariato"),
    "refused": Text("refused", "rechazado", "rifiutato"),
    "failed": Text("failed", "fallido", "fallito"),
}
CONTRACTS = Text("{n} at contract prices", "{n} a precio de contrato", "{n} a prezzo di contratto")
VERSION = Text("version", "versión", "versione")
FETCHED_AT = Text("first seen", "visto por primera vez", "visto la prima volta")
