"""Which of two memories about one matter holds now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
from cpu_time import cpu_time_at_most
from memory.remembered import ask, item

from router.memory.recall.updates import (
    Update,
    asks_for_history,
    replaced_by,
    replaces,
    updates_among,
    valid_item,
    valid_items,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Our database is Postgres 14.", "We moved from Postgres to MySQL 8."),
        ("I live in Leipzig.", "I moved to Copenhagen."),
        ("I live in Lyon, above the bakery at the old harbour.", "I moved to Ghent in May."),
        ("The API gateway is Kong, hosted on AWS in Frankfurt.", "We replaced Kong by Envoy."),
        ("My favourite editor is Vim with the solarized theme.", "I switched to Emacs."),
        ("Redis timeout is 250 ms in production.", "Redis timeout is 500 ms in production."),
        ("The VPN gateway is vpn1.", "The VPN gateway is now vpn3; vpn1 has been switched off."),
        ("The wifi password is hunter2", "The wifi password is swordfish"),
        ("Alice owns checkout", "Bob owns checkout"),
        ("Stripe handles the payments", "Adyen has replaced Stripe for the payments"),
        ("Billing uses Stripe.", "Billing switched to Adyen."),
        ("Telemetry runs on Kafka.", "Telemetry has been moved to NATS."),
        ("The website is built with Hugo.", "The new website is built with Astro."),
        ("Our office is in Ghent.", "Our new office is in Antwerp."),
        ("New wifi password: hunter2", "The new wifi password is swordfish"),
        ("My phone is a Nokia", "My new phone is a Pixel"),
        ("Maria works at Bosch.", "Maria has a new job at Siemens."),
        ("I work at Bosch as an engineer.", "I started a new job at Siemens."),
        ("I drive a Skoda.", "I have a new car, a Tesla."),
        ("My car is a Skoda.", "I bought a car, a Tesla."),
        ("Climbing gym: Boulder Norte, no. 2209.", "Switched climbing gym to Muro Sur, no. 416."),
        ("Ada lives in Ghent.", "Ada moved to Antwerp."),
        ("Ada drives a Skoda.", "Ada sold the Skoda."),
        ("Our main database is Postgres 14", "Our database is now MySQL 8"),
        ("My sister Mia lives in Lyon", "Mia has moved to Ghent"),
        ("I work at Siemens", "I changed jobs"),
        ("My boss is Ingrid Larsen.", "My boss is now Peter Voss."),
        ("Petra is our field lead.", "Joonas is our field lead now."),
        ("My boss is Ana", "Ana retired, my new boss is Ben"),
        ("Ana is my boss.", "My new boss is Ben Ode."),
        ("My boss is Ana", "My boss is now Ben"),
        ("My doctor is Dr Patel", "Dr. Patel moved away; my new doctor is Dr. Nguyen."),
        ("Our CTO is Ana", "Ana resigned and Ben is our CTO"),
        ("Ana is our team lead", "Ben took over from Ana as our team lead"),
        ("Our landlord is Mr Fox.", "Mr Fox died, his son Tim is our landlord."),
        ("Ana is the treasurer", "Ben became the treasurer after Ana"),
        ("Ben Voss is the treasurer.", "Ada is now the treasurer."),
        ("Tickets cost 5 euros.", "The ticket price rose to 7 euros."),
        ("The lesson starts at 17:00", "The lesson now begins at 18:00"),
        ("My wifi password is hunter2", "The wifi password is swordfish"),
        (
            "The session timeout is 30 minutes.",
            "The session timeout is 12 hours because of riders.",
        ),
        ("The release is on 4 December", "The release is postponed to 11 December"),
        ("standup is at 9:30", "standup is at 10 from next week on"),
        ("The rent is 900 euros", "The rent is 1,050 euros since the repairs"),
        ("My manager is Sabine Roth", "Since October my manager is Idris Okafor"),
        ("Passwords expire every 90 days", "Passwords expire every 180 days since May"),
        ("team lead of velo is Petra", "Karim took over from Petra as team lead"),
        ("Karim took over from Petra as team lead", "Noor took over from Karim as team lead"),
        ("Errors are tracked in Rollbar", "dropped Rollbar, errors go to Sentry"),
        (
            "Payslips are on paper in the blue folder.",
            "Payslips are no longer on paper; they come by mail on the first.",
        ),
        ("Eva is head baker.", "Jonas is the new head baker."),
        ("Bernd Huber chairs the club.", "Wanda is now the chair of the club."),
        ("Otto Lang leads the youth section.", "Vera is now the leader of the youth section."),
        ("Our flour comes from Mill Drax.", "We switched our flour supplier to Bongu."),
        ("Shirts are printed by Textilo.", "We switched our shirt printer to Flockwerk."),
        ("I train on Tuesdays.", "I train on Thursdays now."),
        ("The bus is driven by Karl.", "The bus is now driven by Petra."),
        ("Mr. Adler lies in room 4.", "Mr. Adler was moved to room 9."),
        ("We bake with spelt.", "We moved from spelt to rye."),
        (
            "Gianni is our sports director.",
            "Lieke de Wit took over from Gianni as sports director.",
        ),
        (
            "Gianni is our sports director.",
            "Dr. Lieke Wit took over from Gianni as sports director",
        ),
        ("Gianni is our sports director.", "Lieke O'Neil succeeded Gianni as sports director."),
        ("Gianni is our sports director.", "Lieke was elected sports director."),
        ("Gianni is our sports director.", "We made Lieke the sports director."),
        ("Our stage manager is Ana van den Berg.", "The new stage manager is Tom de Boer."),
        ("Jan de Boer is our cook.", "Lieke de Wit took over from Jan de Boer as cook."),
        ("Sequencer 2 is broken.", "Sequencer 2 is now working again."),
        ("The sauna is closed.", "The sauna is open again."),
        ("The lift is out of order.", "The lift has been repaired."),
        ("The hall costs 40 euros on weekdays.", "The hall now costs 60 euros on weekdays."),
        ("The key is kept in the bakery.", "The key is kept in the office now."),
        ("I take my pills in the morning.", "I now take my pills in the evening."),
    ],
)
def test_a_later_statement_of_one_matter_replaces_the_earlier(before: str, after: str) -> None:
    old, new = item("old", before, age=30), item("new", after, age=3)
    assert replaces(new, old)
    assert not replaces(old, new)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ERR_4711 means that the card was rejected.", "ERR_4720 means that the key was wrong."),
        ("Potassium has the code 2823-3.", "Sodium has the code 2951-2."),
        ("I live in Leipzig.", "I bought a cargo bike."),
        ("My boss is Norwegian.", "My boss is Ingrid Larsen."),
        ("My brother is Tom Voss.", "My brother is Max Voss."),
        ("My sister Mia lives in Porto.", "I moved to Hamburg."),
        ("Feature flags live in Unleash.", "We moved to PostgreSQL 17."),
        ("Redis timeout is 250 ms.", "Redis timeout is 250 ms."),
        ("Our database is MySQL 8", "Shop opens at 8 now"),
        ("We use 17 servers", "We moved to Postgres 17"),
        ("My dog is called Rex", "My cat is now called Minka"),
        ("My brother works at Siemens", "I changed jobs"),
        ("I live in Lyon", "My sister moved to Ghent"),
        ("I live in Lyon", "Mia moved to Ghent"),
        ("Our database is Postgres 14", "We might move the database to MySQL next year"),
        ("The production server runs on port 8080", "The staging server runs on port 9090"),
        ("The office is in Ghent", "The office is now closed on Fridays."),
        ("My brother works at Siemens", "My brother now lives in Ghent"),
        (
            "CORS allows only shop.example.",
            "The gateway is now a.shop.example; b has been switched off",
        ),
        ("The cache has been moved to S3", "Vault has moved to its own cluster"),
        ("We use pnpm for the frontend", "The frontend is now tested with Playwright"),
        ("We use Postgres 15", "Logging uses structlog instead of the standard library"),
        ("The mobile app uses React Native", "The mobile app now supports dark mode"),
        ("Our vans are white", "Vans send their position while they move"),
        ("Backups are kept for 30 days", "Backups are now encrypted"),
        ("My name is Ada", "The name is Zoe"),
        ("Builds are made on two machines", "Builds take longer than the tests"),
        ("Ada is allergic to peanuts.", "Ada moved to Antwerp."),
        ("Mia values family time.", "Mia bought figurines that remind her of family love."),
        ("Mia went camping with her family.", "Mia bought a new tent."),
        ("Ada has a cat.", "Ben has a new car and sold his cat."),
        ("Joanna cannot have dairy.", "Nate bakes with coconut oil instead of dairy butter."),
        ("Calvin enjoys long drives in a car.", "Calvin builds new and powerful cars."),
        ("Petra is our developer.", "Joonas is our developer."),
        ("Petra is our field lead.", "Joonas is our cook now."),
        ("My boss is Ana", "My boss is Ben"),
        ("My boss is Ana", "Ana Lee is my new boss"),
        ("My boss is Ana", "Her new boss is Ben"),
        ("My boss is Ana", "If Ana retires, my new boss is Ben"),
        ("My friend is Ana", "My new friend is Ben"),
        ("Acme is our customer", "Globex is our new customer"),
        ("Our treasurer is Ana", "Ana says that the new cook is Ben"),
        ("Petra is at the bakery.", "Joonas is at the bakery now."),
        ("Logs are in Loki, kept 14 days", "deploy days are now monday and wednesday"),
        ("The trial lasts 14 days", "Opening days are now Monday and Friday"),
        ("Vacation must be requested 30 days ahead", "Market days are now Friday and Sunday"),
        ("The price of a ticket is 12 euros", "The price of coal rose to 200 euros"),
        ("Adults pay 12 euros", "Children pay 6 euros since January"),
        ("The rate limit for guests is 10", "The rate limit for partners was raised to 500"),
        ("My bank is ING", "My bank card was replaced"),
        ("Money is stored as integer cents", "Money is paid out on Fridays now"),
        ("Tests run with pytest", "Tests run in parallel now"),
        ("The north gate is locked at night", "The south gate is no longer locked at night"),
        ("I live in Linz", "I moved the bookshelf to the hall"),
        ("Code is formatted with black", "Code is reviewed by two people since May"),
        ("I'm vegetarian", "I eat fish again since my doctor told me to, still no meat"),
        ("Jolene studies engineering.", "Jolene just started learning a new sport."),
        (
            "Barrel 2 stands in aisle 2 and holds 7 litres.",
            "Barrel 7 stands in aisle 0 and holds 7 litres.",
        ),
        ("I have a peanut allergy.", "I bought a new peanut butter."),
        ("I have a latex allergy.", "I replaced my latex pillow."),
        (
            "I am allergic to penicillin.",
            "My doctor replaced penicillin by doxycycline, since I am allergic.",
        ),
        ("I am allergic to wool.", "I replaced wool by cotton in the cellar."),
        ("I am a diabetic.", "I bought a new diabetic cookbook."),
        ("I have a lactose intolerance.", "I switched to lactose free milk."),
        ("I am allergic to nuts.", "I switched to lactose free milk."),
        ("I can't eat gluten.", "I now buy gluten-free bread at Rewe."),
        ("I can't eat eggs.", "I like milk chocolate instead of sugar in cocoa."),
        ("My heart medication is bisoprolol.", "My heart rate dropped to 58."),
        ("My wife is a vegetarian.", "My wife changed the vegetarian menu."),
        ("Mr. Adler is allergic to iodine.", "Mr. Adler was moved to room 9."),
        ("Mrs. Lind takes warfarin.", "Mrs. Lind now takes her meals in bed."),
        ("I take metformin in the morning.", "I now take metformin in the evening, too."),
        ("The oven must be cleaned every evening.", "The oven was moved to the back room."),
        ("We sell rye bread.", "Rye bread is now sliced on request."),
        (
            "We bake croissants on Saturdays.",
            "We bake pretzels instead of croissants on Sundays.",
        ),
        ("The meeting room has 12 chairs.", "The meeting was moved to room 12."),
        ("The bakery has two ovens.", "We bought a new mixer for the bakery."),
        ("A guitar costs 6,800 euros.", "We ship guitars with GLS instead of DHL."),
        ("The team owns the ledger.", "The team moved to the second floor."),
        ("The app caches images for a week.", "We dropped images from the newsletter."),
        ("Take insulin before meals.", "I moved the insulin to the fridge door."),
        ("The cows are milked at 5.", "The cows were moved to the upper meadow."),
        ("Room 5 has an oxygen outlet.", "Room 6 now has an oxygen outlet, too."),
        ("Eva is vegetarian.", "Jonas is vegetarian now."),
        ("Eva likes the baker.", "Jonas is the new baker."),
        ("Sequencer 2 is broken.", "Sequencer 3 is now working again."),
        ("Sequencer 2 is broken.", "Sequencer 2 is broken again, in room 4."),
        ("Sequencer 2 is broken.", "Sequencer 2 is not working again."),
        ("The sauna is closed.", "The sauna might be open again in May."),
        ("The sauna is closed on Mondays.", "The sauna is open again."),
        ("Gianni is our sports director.", "Lieke was elected president of the choir."),
        ("Gianni is our cook.", "We made Lieke a cake."),
        ("Gianni is our sports director.", "We have not made Lieke the sports director."),
        ("Lieke de Wit is our cook.", "Lieke de Wit was elected cook."),
        (
            "The lights are dimmed at the end of act one.",
            "The lights are dimmed at the end of act two.",
        ),
        ("Dogs are allowed in the park in winter.", "Dogs are not allowed in the park in summer."),
        ("Parking is free in the evening.", "Parking is no longer free on Saturdays."),
    ],
)
def test_other_matters_replace_nothing(before: str, after: str) -> None:
    assert not replaces(item("new", after, age=3), item("old", before, age=30))


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ("I drive a grey Skoda Octavia.", "I sold the Skoda and drive a red Tesla now.", True),
        ("I drive a grey Skoda Octavia.", "I sold my old Skoda.", True),
        ("I live in Ulm, third floor, no lift", "moved! new flat is in Bonn, Rhine Street", True),
        ("I work at Siemens as a buyer", "started my new job at Bosch today", True),
        ("I work full time", "I eat fish again since my doctor told me to", False),
        ("I play the piano", "I play chess on Tuesdays now", False),
        ("My boyfriend is Tom.", "My sister broke up with Tom.", False),
        ("I have a Canon camera.", "I traded my Canon in for a Sony camera.", True),
        ("I play the violin on Sundays.", "I gave up the violin.", True),
        ("I go to the gym on Mondays.", "The user quit the gym.", True),
        ("We use Redis for caching.", "We got rid of Redis.", True),
        ("I subscribe to the Guardian.", "I cancelled the Guardian.", False),
        ("I have a subscription to the Guardian.", "I cancelled my Guardian subscription.", True),
        ("My girlfriend is Anna.", "I broke up with Anna.", True),
        ("Anna is my girlfriend.", "I broke up with Anna.", True),
        ("Anna is my sister.", "I broke up with Anna.", False),
        ("I am married to Paul.", "Paul and I got divorced.", True),
        ("I work at Equinor", "I left Equinor", True),
        (
            "I am the tech lead of team Heron.",
            "I changed jobs inside the company: I am now an engineering manager of three teams.",
            True,
        ),
        ("I work as a geologist for Equinor", "I resigned from Equinor last May", True),
        ("I am a member of the Alpine Club", "I left the Alpine Club", True),
        ("Ada works at Bosch.", "Ada left her job at Bosch.", True),
        ("I play the horn in the town band", "I dropped out of the town band", True),
        ("I have a pension with Equinor", "I left Equinor", False),
        ("I have a red umbrella", "I left the umbrella on the train", False),
        ("My brother works at Equinor", "I left Equinor", False),
        ("I work at Equinor", "I will not have left Equinor before May", False),
        ("I work at Equinor", "I never left Equinor", False),
        ("I wear glasses.", "I do not wear glasses any more.", True),
        ("I use Chrome as my browser at home.", "I switched to Firefox as my browser.", True),
        ("Ada drives a Skoda.", "Ada sold the Skoda.", True),
        ("I drink tea every morning.", "I stopped drinking coffee.", False),
        ("I play tennis on Wednesdays.", "I sold my old tennis racket.", False),
        ("I drive a grey Skoda.", "I got rid of the old tyres of the Skoda.", False),
        ("I drive a grey Skoda.", "My brother sold his Skoda.", False),
        ("I drive a grey Skoda.", "I have not sold the Skoda.", False),
        ("I drive a grey Skoda.", "I almost sold the Skoda.", False),
        ("My son plays tennis.", "I gave up tennis.", False),
        ("Anna was born in 1990 and likes cats.", "I broke up with Anna.", False),
        ("Ada is allergic to peanuts.", "Ada moved to Antwerp.", False),
        ("User's name is Ada Lindqvist; she is a developer.", "Ada moved to Antwerp.", False),
        ("The user prefers dark mode.", "The user moved to Antwerp.", False),
        ("User prefers dark mode.", "The user moved to Antwerp.", False),
        ("My wife is called Mia.", "My wife moved to Antwerp.", False),
        ("I am allergic to peanuts.", "The user moved to Antwerp.", False),
        ("The user is allergic to tree nuts", "The user is allergic to cashew nuts", False),
        ("Ada is allergic to tree nuts", "Ada is allergic to cashew nuts", False),
        ("James is allergic to peanuts.", "James moved to Antwerp.", False),
        ("James lives in Ghent.", "I moved to Antwerp.", False),
        ("James lives in Ghent, near the zoo.", "James moved to Antwerp.", True),
        ("I am allergic to peanuts.", "I have become allergic to cats.", False),
        ("Ada is allergic to peanuts.", "Ada became allergic to cats.", False),
        ("Prefers red wine", "I switched from wine to beer", True),
        ("Ada lives in Ghent, near the zoo.", "Ada moved to Antwerp.", True),
        ("My sister Mia lives in Ghent", "Mia has moved to Antwerp", True),
        ("Marta works at a hospital", "The user was promoted to team lead", False),
        ("Lives in Ghent", "I moved to Antwerp", True),
        ("The user lives in Ghent.", "I moved to Antwerp.", True),
        ("I live in Ghent.", "The user has moved to Antwerp.", True),
        ("My doctor is Dr Patel", "My doctor has changed to Dr Nguyen", True),
        ("My brother works at Bosch, in Ulm", "My brother changed jobs", True),
    ],
)
def test_that_two_are_about_one_person_makes_no_replacement(
    before: str, after: str, replaced: bool
) -> None:
    old, new = (
        item(text[-9:], text, layer="user", age=age) for text, age in ((before, 9), (after, 1))
    )
    assert replaces(new, old) is replaced


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        ("We use Jenkins for CI", "We switched from Jenkins to GitHub Actions", True),
        ("Billing uses Stripe.", "Billing has been moved from Stripe to Adyen.", True),
        ("We use Jenkins for CI", "We moved to GitHub", False),
        ("The Jenkins plugin was written by Ana", "We switched from Jenkins to GitHub", False),
    ],
)
def test_what_was_switched_from_is_replaced_in_another_layer_too(
    before: str, after: str, replaced: bool
) -> None:
    old, new = item("old", before, layer="project", age=9), item("new", after, age=1)
    assert replaces(new, old) is replaced


def test_of_an_endless_text_only_the_beginning_is_kept() -> None:
    """Stop words say nothing, so such a text has few words to compare."""
    long = "The cache has moved to S3 " + "and the " * 10_000
    new, old = item("new", long, age=1), item("old", "The cache is on a disk", age=9)
    held = sys.getrefcount(long)
    assert replaces(new, old)
    assert sys.getrefcount(long) == held


def test_long_memories_are_compared_quickly() -> None:
    """As a recall does with all that it found: so many took 10 s."""
    texts = [" ".join(f"word{(n + 7 * m) % 999}" for m in range(12_000)) for n in range(30)]
    items = [item(f"m{n}", text, age=n) for n, text in enumerate(texts)]
    with cpu_time_at_most(1):
        assert updates_among(items) == []


def test_events_are_never_replaced() -> None:
    old = item("old", "We deployed version 1 on Monday.", layer="episodic", age=9)
    new = item("new", "We deployed version 2 on Monday now.", layer="episodic", age=2)
    assert not replaces(new, old)


def test_the_time_of_the_question_decides_which_one_held() -> None:
    old = item("old", "Our database is Postgres 14.", age=400)
    new = item("new", "We moved from Postgres to MySQL 8.", age=30)
    (update,) = updates_among([new, old])
    assert valid_item(update, ask("Which database do we use?")) is new
    assert valid_item(update, ask("Which database did we use last summer?")) is old
    assert valid_item(update, ask("Which database did we use previously?")) is old
    assert valid_item(update, ask("Which database did we use last week?")) is new


@pytest.mark.parametrize(
    "texts",
    [
        (
            "Our database is Postgres",
            "We moved from Postgres to MySQL",
            "We moved from MySQL to CockroachDB",
        ),
        (
            "Our database is Postgres",
            "Our database is now MySQL",
            "Our database is now CockroachDB",
        ),
    ],
)
@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("What was our previous database?", {"1"}),
        ("Which database did we use before?", {"1"}),
        ("What was our old database?", {"1"}),
        ("What did we use before CockroachDB?", {"1"}),
        ("What was our original database?", {"0", "1"}),
        ("Did we previously use Postgres?", {"0", "1"}),
        ("What is our database?", {"2"}),
    ],
)
def test_before_the_present_one_was_that_which_it_has_replaced(
    texts: Sequence[str], text: str, best: set[str]
) -> None:
    """And what is asked for by its name, or as the first of all, comes before it."""
    items = [item(str(n), text, age=90 - 30 * n) for n, text in enumerate(texts)]
    held = valid_items(updates_among(items), ask(text))
    behind = {one.id for _, update in held for one in (update.older, update.newer)}
    behind -= {valid.id for valid, _ in held}
    assert {valid.id for valid, _ in held} == best
    assert behind == {"0", "1", "2"} - best


@pytest.mark.parametrize("mark", [None, "1"])
@pytest.mark.parametrize(
    "texts",
    [
        ("I live in Leipzig", "I moved to Hamburg", "I moved to Oslo"),
        ("Our database is Postgres 14", "We moved to MySQL 8", "We moved to CockroachDB"),
    ],
)
def test_what_replaces_one_thing_first_is_replaced_by_what_replaces_it_later(
    texts: Sequence[str], mark: str | None
) -> None:
    """Whether or not the oldest is marked as replaced by the second."""
    marks = [{"superseded_by": mark} if mark and not n else {} for n in range(3)]
    items = [
        replace(item(str(n), text, layer="user", age=90 - 30 * n), attributes=marks[n])
        for n, text in enumerate(texts)
    ]
    found = {(update.older.id, update.newer.id) for update in updates_among(items)}
    assert ("1", "2") in found
    of_last = updates_among(items, lambda one: one.id == "2")  # "What was so before Oslo?"
    assert found == {(update.older.id, update.newer.id) for update in of_last}
    assert [one.id for one in replaced_by(items[2], items[:2])] == ["0", "1"]


@pytest.mark.parametrize("text", ["What did we use before the move?", "our former database"])
def test_words_of_the_past_ask_for_history(text: str) -> None:
    assert asks_for_history(ask(text))
    assert not asks_for_history(ask("Which database do we use?"))


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("I live in Graz and have a wasp allergy.", "I moved to Linz.", "Do I have an allergy?"),
        ("I live in Graz and have a wasp allergy.", "I moved to Linz.", "What am I allergic to?"),
        (
            "Omar is treasurer and keeps the cellar key.",
            "Lena is the new treasurer.",
            "Who keeps the cellar key?",
        ),
        (
            "Bus 7 leaves at 8:10 and takes bicycles.",
            "Bus 7 leaves at 8:25 now.",
            "Does bus 7 take bicycles?",
        ),
        (
            "The hall was built by the brothers Krone. The key code of the hall is 4821.",
            "The key code of the hall is now 9034.",
            "Who built the hall?",
        ),
        ("I live in Graz and work at Bosch.", "I moved to Linz.", "Do I work at Bosch?"),
    ],
)
def test_a_second_fact_of_a_memory_stays_true(before: str, after: str, asked: str) -> None:
    """Who moved to Linz lost their allergy: it was marked as replaced, and came second."""
    old, new = item("old", before, age=30), item("new", after, age=3)
    assert replaced_by(new, [old]) == []
    assert valid_item(Update(old, new), ask(asked)) is old


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I live in Ulm, third floor, no lift.", "I moved to Bonn."),
        ("The timeout is 30 s because riders complained and left.", "The timeout is now 60 s."),
        ("I train on Tuesdays and Thursdays.", "I train on Mondays now."),
        ("Ana retired, Ben is our cook.", "Cem took over from Ben as our cook."),
    ],
)
def test_what_has_no_verb_and_a_reason_are_no_second_fact(before: str, after: str) -> None:
    old, new = item("old", before, age=30), item("new", after, age=3)
    assert replaced_by(new, [old]) == [old]


@pytest.mark.parametrize("other", ["have a wasp allergy", "work from home on Mondays"])
def test_what_has_changed_of_two_facts_is_told_first(other: str) -> None:
    old = item("old", f"I live in Graz and {other}.", age=30)
    new = item("new", "I moved to Linz.", age=3)
    [update] = updates_among([old, new])
    assert valid_item(update, ask("Where do I live?")) is new
