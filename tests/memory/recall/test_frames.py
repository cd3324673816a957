"""What is read from a short statement, and which two statements cannot both hold."""

from __future__ import annotations

import pytest

from router.memory.recall.frames import contradict, speaks_of

ONE_AT_A_TIME = """
The wifi password is hunter2 | The wifi password is swordfish
Rye flour comes from Miller Haas on Tuesdays | Rye flour comes from Miller Haas on Fridays
The shop opens at 7 | The shop opens at 8
Our database is Postgres 14 | Our database is MySQL 8
My phone number is 555 0134 | My phone number is 555 0199
Mia's birthday is 4 March | Mia's birthday is 14 March
Alice owns the checkout service | Bob owns the checkout service
My sister lives in Lyon | My sister lives in Ghent
The standup is at 9:30 | The standup is at 10:15
A day ticket costs 8 euros | A day ticket costs 9.50 euros
The payments API is on version 2.3 | The payments API is on version 3.0
I work at Siemens | I work at Bosch
The office is located on Mill Street 4 | The office is located on Harbour Road 12
The deadline for the grant is 3 May | The deadline for the grant is 17 May
The staging server runs on port 8080 | The staging server runs on port 9090
Our landlord is Mr Keller | Our landlord is Mrs Brandt
My doctor is Dr Patel | My doctor is Dr Nguyen now
Tom is 41 years old | Tom is 42 years old
The meeting is on Monday | The meeting is on Wednesday
The default branch is called master | The default branch is called main
The rent is 900 euros a month | The rent is 960 euros a month
The pharmacy closes at 18:00 | The pharmacy closes at 19:30
Our CEO is Laura Stein | Our CEO is Marco Weiss
The gate code is 4471 | The gate code is now 9023
I weigh 82 kilos | I weigh 79 kilos
Backups are kept for 30 days | Backups are kept for 90 days
The car is parked on level 2 | The car is parked on level 4
My email address is jo@old.example | My email address is jo@new.example
The alarm code for the garage is 1188 | The alarm code for the garage is 7302
My wifi password is hunter2 | The wifi password is swordfish
The lesson begins at 17:00 | The lesson starts at 18:00
Our accountant is Frau Lindner | Our accountant is Herr Vogt
My flight leaves at 6:40 | My flight leaves at 8:05
The oat milk costs 2.10 at the wholesaler | The oat milk costs 2.35 at the wholesaler
We are hosted on Hetzner | We are hosted on AWS
Priya leads the mobile team | Jonas leads the mobile team
The CI runner has 4 cores | The CI runner has 8 cores
My shoe size is 43 | My shoe size is 44
The frontend is written in Angular | The frontend is written in Svelte
My brother works for Airbus | My brother works for Bosch
The vet appointment is on 12 June at 10 | The vet appointment is on 19 June at 10
The timezone of the server is UTC | The timezone of the server is Europe/Berlin
Max file size is 10 MB | Max file size is 25 MB
The lesson starts at 17:00 | The lesson starts at 17:30
My username on the portal is jdoe | My username on the portal is john.doe
The train to Basel leaves from platform 3 | The train to Basel leaves from platform 7
The project lead is Nadia | The project lead is Oskar
Grandma's address is Elm Street 9 | Grandma's address is Oak Lane 22
Wifi password: hunter2 | Wifi password: swordfish
Timeout: 30 s | Timeout: 60 s
Alice owns checkout | Checkout is owned by Bob
Deploy target: eu-west-1 | Deploy target: eu-central-1
The NAS password is pear12 | The password for the NAS is apple99
My bank is ING | My bank is N26
The config file is at /etc/app.conf | The config file is at /opt/app/app.conf
My landlord is Mr. Keller. He lives upstairs. | My landlord is Mrs. Brandt. She has a dog.
"""
BOTH_HOLD = """
Mia likes tea | Mia likes cake
The team uses Jira | The team uses Slack
My dog is called Rex | My cat is now called Minka
My brother works at Siemens | I changed jobs
Our database is MySQL 8 | Shop opens at 8 now
My sister lives in Lyon | My brother lives in Ghent
I work at Siemens | My wife works at Bosch
The shop opens at 7 | The shop closes at 8
Mia's birthday is 4 March | Tom's birthday is 14 March
The wifi password is hunter2 | The router password is swordfish
The office is in Ghent | The office is closed on Fridays
Tom is vegetarian | Tom is allergic to nuts
My phone number is 555 0134 | Mia's phone number is 555 0199
The production server runs on port 8080 | The staging server runs on port 9090
Alice owns the checkout service | Alice owns the search service
The kitchen is on level 2 | The car is parked on level 4
Our landlord is Mr Keller | Our neighbour is Mr Brandt
A day ticket costs 8 euros | A week ticket costs 30 euros
I visited Rome in 2019 | I visited Rome in 2022
The standup is at 9:30 | The standup is run by Ana
We ordered 20 chairs on Monday | We ordered 12 tables on Tuesday
I live in Berlin | I want to live in Lisbon one day
The cake is in the oven | The cake is for Mia
Lena speaks French | Lena speaks Dutch
The API is written in Go | The API is used by the mobile app
The backup failed on 3 May | The backup failed on 9 May
My favourite colour is green | My favourite book is Dune
Ben has a daughter called Ida | Ben has a son called Olaf
The invoice for March is 120 euros | The invoice for April is 140 euros
We might move the database to MySQL next year | Our database is Postgres 14
My son is called Tim | My daughter is called Ella
The museum opens at 10 on Sundays | The museum opens at 9 on Mondays
Our office has a kitchen | Our office has a garden
The report is due on Friday | The invoice is due on Monday
I am allergic to nuts | I am allergic to cats
The database is slow | The database is Postgres 14
Jonas works at Siemens | Priya works at Bosch
My car is a Golf | My bike is a Canyon
Redis runs on port 6379 | Postgres runs on port 5432
Tests are run with pytest | Tests are stored in the folder tests
Ida is 4 years old | Ida is 102 cm tall
My mother's phone number is 0171 22 | My father's phone number is 0171 33
I met Ana in Porto | I met Ana in Lisbon
We deploy on Tuesdays | We deploy with make release
The coffee costs 3 euros | The tea costs 2 euros
My friend Lea lives in Kiel | I now live in Kassel
Service A depends on Redis | Service A depends on Kafka
The wifi in the office is called Guest | The wifi at home is called Fritz
The first lesson starts at 8 | The second lesson starts at 9:45
The limit for uploads is 10 MB | The limit for downloads is 50 MB
The shop opens at 7 | The shop opens at 7:00
The meeting is at 10 | The meeting is on Monday
My brother is called Tom | My brother is called Ben
Note: Ana called | Note: Ben called
The rent is 960 euros | The rent was 900 euros
Ich war am Montag in Ulm | Ich war am Dienstag in Bonn
It is 8 euros | It is 9 euros
Today the canteen closes at 2 | Today the canteen closes at 3
The bus leaves at 7:10 | The bus leaves at 8:10
The project is in Go | The project is in trouble
The meeting with Bosch is on Monday | The meeting with Airbus is on Tuesday
The house has 4 rooms | The house has 2 floors
The parser is written in Rust | The parser is written by Olga
Tom is 41 years old | Tom is 180 cm tall
The shop opens at 7 | The shop opens at 9 on Sundays
I live in Berlin | I live in Berlin Mitte
Alice owns a dog | Bob owns a dog
Alice owns 3 cars | Bob owns 3 cars
Alice leads by example | Bob leads by example
Alice owns checkout | She owns checkout
My name is Ada | The name is Zoe
The CI is green | The CI is red
The office is in Ghent | The office is closed
"""


def pairs(lines: str) -> list[tuple[str, ...]]:
    return [tuple(line.split(" | ")) for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("one", "other"), pairs(ONE_AT_A_TIME))
def test_two_values_of_what_has_one_at_a_time_contradict_each_other(one: str, other: str) -> None:
    assert contradict(one, other)
    assert contradict(other, one)
    assert not contradict(one, one)


@pytest.mark.parametrize(("one", "other"), pairs(BOTH_HOLD))
def test_what_can_hold_together_contradicts_nothing(one: str, other: str) -> None:
    assert not contradict(one, other)
    assert not contradict(other, one)


def test_what_is_only_pointed_at_may_be_two_things() -> None:
    assert contradict("Alice owns it", "Bob owns it") is None


def test_two_subjects_are_told_apart_from_what_cannot_be_told() -> None:
    assert contradict("My dog is called Rex", "My cat is called Minka") is False
    assert contradict("My dog is called Rex", "My dog likes Minka") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "is", "= ", ". is 4", "The shop is ?!", "The shop is : late", "password: ?!"),
        *("... is at 4", "x" * 5_000, "is " * 90, "私は東京です"),
    ],
)
def test_any_text_is_read(text: str) -> None:
    assert not contradict(text, text)


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("I've moved to Ghent", "I"),
        ("We use Go", "I"),
        ("My sister Mia sings", "sister"),
        ("My old father sings", "father"),
        ("My car is red", None),
        ("The user sings", "I"),
        ("User's name is Ada", "I"),
        ("The users sing", None),
        ("", None),
    ],
)
def test_whom_a_text_is_about(text: str, person: str | None) -> None:
    assert speaks_of(text) == person
