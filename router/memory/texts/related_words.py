"""Words of everyday life that belong together: "eat" and "allergic", "live" and "flat".

People ask for what they saved in other words than they saved it in, and the bundled encoder knows
too little of such pairs. Each group holds words that one question and its answer may split between
them. It is a small thesaurus of the matters that people tell an assistant about themselves and
their work, in English; a word may stand in several groups. A shared group counts less than a shared
word (see ``recall/relevance.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from router.text import stem

_GROUPS: Final = """
live living home house flat apartment city town village moved address reside residence farm
eat eating food diet meal lunch dinner breakfast snack restaurant cook menu dish
eat food steak pizza pasta sushi burger
diet eat vegetarian vegan allergic allergy intolerant intolerance coeliac celiac gluten lactose pork
vegetarian vegan meat steak beef chicken pork
seafood fish sushi shellfish prawns
nut nuts peanut peanuts hazelnut hazelnuts almond
drink coffee tea espresso cappuccino latte milk beer wine juice
milk lactose cheese cream dairy cappuccino latte
bread pizza pasta cake gluten coeliac celiac flour
allergic allergy dangerous ill intolerant
pet pets animal animals cat dog horse rabbit bird hamster puppy kitten
married wife husband spouse wedding partner marriage
child children kid kids son daughter baby
family mother father parents brother sister wife husband children son daughter
job work role position profession occupation career employed engineer manager lead developer
boss manager supervisor lead chief
team colleague colleagues coworker crew
language languages speak tongue fluent translate
music instrument play band guitar piano bass violin drums cello sing choir concert
hobby hobbies leisure sport sports free spare weekend sing play sail hike ride
sport training run running marathon hockey football tennis swim gym bike cycle
travel trip journey flight flying fly train ferry plane car drive conference abroad
drive car bus lorry truck licence license vehicle van
morning noon afternoon evening early late owl time schedule meeting calendar
meeting call appointment schedule book calendar
health doctor ill illness surgery disease pain migraine diagnosis condition
see eyes glasses blind colour color sight vision
hear hearing deaf ear listen
colour color red green blue dark light theme scheme
desk office room seat sit window workplace standing
born birthday birth age old year
phone mobile cell smartphone number telephone
computer laptop machine notebook
editor ide vim neovim emacs code
name called call nickname pronouns address
answer answers reply short long format style prefer list
money price prices cost costs amount amounts fee cents pay
bill bills invoice invoices receipt
buy purchase order bought ordered
salary pay wage income
delete remove erase drop deletion
copy backup backups restore restored back bring
database postgres mysql sqlite oracle mongodb
allowed allow may permitted permit forbidden forbid forbade banned prohibited must
film video camera cameras record recording
usb stick memory drive disk
die died killed kill crash crashed dead stopped down outage
error fault failure bug problem broken
slow lag lags delay behind late latency
show appear visible display shown
button buttons target click touch screen screens client
mail mails email e-mail address inbox
log logs logging write logged
secret secrets password passwords credential credentials token
keep kept retain retention store stored
throw waste bin bins garbage trash disposal
medicine drug drugs medication pill pills
customer customers client clients
company companies partner subcontractor supplier vendor
carry transport ship deliver delivery
treat treated seen patient patients
urgent emergency red critical immediately once
hospital clinic ward
written write rewritten ported programming language
host hosted hosting server provider cloud
begin start starts started
finish end stop stops done
"""


def _by_stem(groups: str) -> Mapping[str, frozenset[str]]:
    related: defaultdict[str, set[str]] = defaultdict(set)
    for line in groups.strip().splitlines():
        words = {stem(word) for word in line.split()}
        for word in words:
            related[word] |= words - {word}
    return {word: frozenset(others) for word, others in related.items()}


_RELATED: Final = _by_stem(_GROUPS)


def related_to(stems: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each stem that stands in a group, the stems that may stand for it."""
    return {word: _RELATED[word] for word in stems if word in _RELATED}
