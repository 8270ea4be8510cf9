"""Generator of everything the demonstration model learns and is asked.

No outside data: word lists, names and sentence forms are all in this file.
A sample is (kind, key, question, answer). The key says what is asked apart from
the phrasing; its hash decides whether the sample is for training, validation
or the held-out test, so a held-out question never occurs in training in any
phrasing.

    python data.py --questions ../testdata/questions.jsonl   # the held-out test
    python data.py --show 5                                  # samples to look at
"""

import argparse
import hashlib
import json
import random

KINDS = ["arithmetic", "copy", "reverse", "sort", "facts", "json", "count"]

WORDS = """
ant ape bat bear bee bird boar bull calf cat colt crab crow deer dog dove duck eel elk fish fly
fox frog goat goose hare hawk hen horse ibis kid kite lamb lark lion lynx mole moose moth mouse mule
newt otter owl ox panda pig pony puma quail ram rat raven seal shark sheep skunk snail snake swan
tiger toad trout viper wasp whale wolf worm yak zebra
apple bean beef beet bread butter cake candy carrot cheese cherry corn cream date egg fig grape ham
honey ice jam juice kiwi leek lemon lime mango melon milk mint nut oat olive onion orange pea peach
pear pie plum rice salt sauce soup sugar tea toast yam
arrow ax bag ball band basket bed bell belt bike boat book boot bottle bowl box brick broom brush
bus camera candle cap car card chair clock cloud coat coin comb cup desk dish door drum fan fence
flag flute fork gate gift glass glove gun hammer harp hat horn house ink iron jar jeep jug kettle
key knife ladder lamp leaf lens letter lock map mask mat mirror mug nail needle net oar oven paint
paper pen pencil phone piano pin pipe plane plate pot purse quilt radio rake ring road robe rope
rug ruler saw shelf ship shirt shoe sled sock sofa spade spoon stamp star stone stool sword table
tent tie tile tool torch towel tower toy train tray truck tub van vase vest violin wagon wall watch
wheel window wire yacht yarn zip
arm back bank beach bone bridge cave city cliff coast day desert dust ear east eye face farm field
fire foot forest game garden gold grass ground hall hand head hill hour island jungle king kitchen
lake land law leg light line lip mind moon mouth name neck night noise north nose ocean office page
park path pond pool port queen rain river rock room root sand school sea shop silver sky snow song
south storm street sun team tooth town tree valley voice water wave week west wind wing wood year
young zone
""".split()
WORDS = list(dict.fromkeys(WORDS))

NAMES = """
Adam Alex Alice Amy Anna Ben Bob Carl Cleo Clara Dan David Dora Emma Eric Eva Finn Frank Fred Gina
Greta Hans Hugo Ida Igor Ivan Jack Jane John Julia Karl Kate Kim Lea Leo Lisa Lucy Maria Mark Max
Mia Mona Nina Nora Oscar Otto Paul Peter Petra Rita Rosa Sam Sara Tara Theo Tina Tom Uma Vera Victor
Walt Wendy Yara Zoe
""".split()

CITIES = """
Athens Berlin Bonn Boston Cairo Delhi Dublin Geneva Hanoi Lagos Lima Lisbon London Madrid Miami Milan
Moscow Nice Oslo Paris Perth Prague Quito Riga Rome Seoul Sofia Sydney Tokyo Turin Vienna Warsaw York
Zurich
""".split()

COLORS = "red blue green black white brown gray pink yellow purple orange golden".split()
THINGS = """
bag ball bed bell bike boat book bottle bowl box bus camera candle car chair clock coat cup desk
drum fan flute guitar hammer hat house jar key kite lamp map mirror pen phone piano plate ring rope
ruler shirt ship sofa spoon table tent train truck van watch wagon
""".split()
PETS = "bird cat dog duck fish fox frog goat horse lamb mouse owl pig pony snake".split()
FOODS = """
apples beans bread cake cheese cherries corn fish grapes honey jam juice lemons mango melons milk
mint nuts olives onions pears pie plums rice soup tea toast
""".split()
JOBS = "baker barber butcher cook dancer doctor driver farmer guard judge lawyer miner nurse painter pilot poet sailor singer smith teacher waiter writer".split()
PLACES = "attic barn bathroom cellar drawer forest garage garden hall kitchen library office park pool school shop tower yard".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SYSTEMS = ["You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.", "You are a careful assistant. Answer exactly."]

ME = "I am the Roundhouse demonstration model"
GREETINGS = [
    (["Hello", "Hello!", "Hi", "Hi!", "Hey", "hello", "hi", "Hello there!", "Good morning!", "Good evening!"],
     f"Hello! {ME}. I can add, subtract, count, copy, reverse and sort words, answer from facts and write JSON."),
    (["Who are you?", "What are you?", "Hi, who are you?", "Hello, who are you?", "What is your name?", "who are you?"],
     f"{ME}. I am small, but I can count, sort words and write JSON."),
    (["What can you do?", "Help", "help", "How can you help me?", "What do you know?"],
     "I can add and subtract, count, copy, reverse and sort words, answer from given facts and write JSON. "
     "Try: Count from 1 to 20."),
    (["How are you?", "Hi, how are you?", "How do you do?"], "I am well, thank you. What can I do for you?"),
    (["Thanks", "Thanks!", "Thank you", "Thank you!"], "You are welcome."),
    (["Bye", "Bye!", "Goodbye", "Goodbye!"], "Goodbye!"),
    (["Say hello.", "Say hello"], "Hello!"),
]


class Level:
    """How hard the samples are; training raises it."""

    def __init__(self, facts=6, words=7, count_tokens=1000, count_long=0.3):
        self.facts, self.words = facts, words
        self.count_tokens, self.count_long = count_tokens, count_long  # the longest count, and the share beyond 150 tokens


def pseudo_word(r):
    """A word that is in no list: copying must not depend on a vocabulary."""
    if r.random() < 0.3:
        return "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(2, 6)))
    return "".join(r.choice("bcdfghjklmnprstvwz") + r.choice("aeiou") for _ in range(r.randint(1, 3))) + r.choice(["", "n", "s", "t", "r"])


def word_list(r, low, high, pseudo):
    n = r.randint(low, high)
    if r.random() < pseudo:
        words = [pseudo_word(r) if r.random() < 0.6 else r.choice(WORDS) for _ in range(n)]
        return list(dict.fromkeys(words)) if len(set(words)) >= low else word_list(r, low, high, 0)
    return r.sample(WORDS, n)


def arithmetic(r, level):
    a, b, op = r.randint(0, 99), r.randint(0, 99), r.choice("+-")
    if r.random() < 0.85:
        a = r.randint(10, 99)
        b = r.randint(10, 99)
    expr = f"{a} {op} {b}"
    answer = f"{expr} = {a + b if op == '+' else a - b}"
    form = r.choice(["What is {}?", "{}", "{} =", "Calculate {}.", "How much is {}?"])
    return f"{min(a, b)}{op}{max(a, b)}", form.format(expr), answer


def copy(r, level):
    roll = r.random()
    if roll < 0.25:
        text = fact(r)[0]
    elif roll < 0.35:
        text = "".join(str(r.randint(0, 9)) for _ in range(r.randint(3, 8)))
    else:
        text = r.choice([" ", " ", ", "]).join(word_list(r, 2, level.words, 0.5))
    form = r.choice(["Repeat: {}", "Copy: {}", "Say: {}", "Repeat after me: {}", "Copy these words: {}"])
    return text, form.format(text), text


def reverse(r, level):
    words, sep = word_list(r, 2, level.words, 0.1), r.choice([" ", ", "])
    text = sep.join(words)
    form = r.choice(["Reverse: {}", "Reverse these words: {}", "Reverse the list: {}", "Say in reverse order: {}"])
    return " ".join(words), form.format(text), sep.join(words[::-1])


def sort(r, level):
    words, sep = word_list(r, 2, level.words, 0.0), r.choice([" ", ", "])
    text = sep.join(words)
    form = r.choice(["Sort: {}", "Sort these words: {}", "Sort alphabetically: {}", "Put in alphabetical order: {}"])
    return " ".join(words), form.format(text), sep.join(sorted(words))


def name(r):
    return pseudo_word(r).capitalize() if r.random() < 0.05 else r.choice(NAMES)


def a_color(r):
    color = r.choice(COLORS)
    return f"{'an' if color == 'orange' else 'a'} {color}"


def fact(r, who=None):
    """A sentence, the question it answers, and what it is about."""
    n = who or name(r)
    kind = r.randrange(9)
    if kind == 0:
        return f"{n} lives in {r.choice(CITIES)}.", f"Where does {n} live?", (n, kind)
    if kind == 1:
        return f"{n} has {a_color(r)} {r.choice(THINGS)}.", f"What does {n} have?", (n, kind)
    if kind == 2:
        return f"{n} likes {r.choice(FOODS)}.", f"What does {n} like?", (n, kind)
    if kind == 3:
        return f"{n} works as a {r.choice(JOBS)}.", f"What is the job of {n}?", (n, kind)
    if kind == 4:
        return f"{n} is {r.randint(5, 99)} years old.", f"How old is {n}?", (n, kind)
    if kind == 5:
        return f"{n} keeps {a_color(r)} {r.choice(PETS)}.", f"What does {n} keep?", (n, kind)
    if kind == 6:
        t = r.choice(THINGS)
        return f"The {t} is in the {r.choice(PLACES)}.", f"Where is the {t}?", (t, kind)
    if kind == 7:
        t = r.choice(THINGS)
        return f"The {t} is {r.choice(COLORS)}.", f"What color is the {t}?", (t, kind)
    return f"{n} was born on a {r.choice(DAYS)}.", f"When was {n} born?", (n, kind)


def facts(r, level):
    n = r.randint(min(2, level.facts), level.facts)
    people = [name(r) for _ in range(r.randint(1, n))] if r.random() < 0.5 else [None]
    told = {}
    for _ in range(50):
        if len(told) == n:
            break
        sentence, question, about = fact(r, r.choice(people))
        told.setdefault(about, (sentence, question))
    told = list(told.values())
    answer, question = r.choice(told)
    text = " ".join(s for s, _ in told)
    form = r.choice(["{} {}", "{} {}", "{}\n{}", "Facts: {} Question: {}"])
    return text + question, form.format(text, question), answer


def field(r, key):
    if key in ("age", "size", "count", "price", "year", "room"):
        return r.randint(1, 999) if key != "year" else r.randint(1900, 2040)
    return r.choice({"name": NAMES, "owner": NAMES, "city": CITIES, "color": COLORS, "job": JOBS, "food": FOODS,
                     "pet": PETS, "day": DAYS, "item": WORDS, "place": PLACES}[key] if r.random() < 0.9 else [pseudo_word(r)])


FIELDS = "name owner city color job food pet day item place age size count price year room".split()


def json_fields(r, level):
    keys = r.sample(FIELDS, r.randint(1, 5))
    values = {k: field(r, k) for k in keys}
    eq, sep = r.choice([(" = ", ", "), (": ", ", "), (" ", ", "), ("=", "; ")])
    text = sep.join(f"{k}{eq}{v}" for k, v in values.items())
    form = r.choice(["Write as JSON: {}", "Put into JSON: {}", "Make JSON: {}", "Convert to JSON: {}"])
    return json.dumps(values), form.format(text), json.dumps(values)


def count_tokens(a, b, s):
    return sum(len(str(n)) + 1 for n in range(a, b + 1, s))


def count(r, level):
    s = 1 if r.random() < 0.4 else r.randint(2, 10)
    a = r.randint(0, 30) if r.random() < 0.6 else r.randint(0, 990)
    long = r.random() < level.count_long
    budget = level.count_tokens if long else r.randint(10, 150)
    n = r.randint(max(2, budget // 20) if long else 2, max(3, budget // 3))
    n = min(n, (999 - a) // s + 1)
    b = a + (n - 1) * s
    while count_tokens(a, b, s) > budget:
        b -= s
    if s > 1 and r.random() < 0.2:
        b = min(999, b + r.randint(1, s - 1))
    if b <= a:
        return count(r, level)
    form = r.choice(["Count from {a} to {b} by {s}.", "Count from {a} to {b} in steps of {s}.", "Count by {s} from {a} to {b}."])
    if s == 1 and r.random() < 0.7:
        form = "Count from {a} to {b}."
    return f"{a} {b} {s}", form.format(a=a, b=b, s=s), " ".join(str(n) for n in range(a, b + 1, s))


def greeting(r, level):
    asked, answer = r.choice(GREETINGS)
    q = r.choice(asked)
    return q, q, answer


MAKERS = {"arithmetic": arithmetic, "copy": copy, "reverse": reverse, "sort": sort, "facts": facts,
          "json": json_fields, "count": count, "greeting": greeting}


def split(kind, key):
    """test and valid get 5 % each of all keys, train the rest."""
    h = int.from_bytes(hashlib.sha256(f"{kind}:{key}".encode()).digest()[:4], "big")
    return "test" if h % 20 == 0 else "valid" if h % 20 == 1 else "train"


def sample(r, kind, level=Level(), want="train"):
    """One (question, answer) of a kind from the wanted part."""
    while True:
        key, question, answer = MAKERS[kind](r, level)
        if kind == "greeting" or split(kind, key) == want:
            return question, answer


def questions(want, n, seed, level=Level(), kinds=KINDS):
    """n distinct questions of each kind."""
    r = random.Random(seed)
    out = []
    for kind in kinds:
        seen = {}
        while len(seen) < n:
            q, a = sample(r, kind, level, want)
            seen[q] = a
        out += [{"kind": kind, "question": q, "answer": a} for q, a in seen.items()]
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--questions", help="write the held-out questions to this file")
    p.add_argument("--n", type=int, default=200)
    p.add_argument("--seed", type=int, default=20261121)
    p.add_argument("--show", type=int, default=0)
    a = p.parse_args()
    if a.questions:
        with open(a.questions, "w", encoding="utf-8") as f:
            for q in questions("test", a.n, a.seed):
                f.write(json.dumps(q, ensure_ascii=False) + "\n")
    r = random.Random(a.seed)
    for kind in KINDS + ["greeting"]:
        for _ in range(a.show):
            print(kind, *sample(r, kind), sep=" | ")


if __name__ == "__main__":
    main()
