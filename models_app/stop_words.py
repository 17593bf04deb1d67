"""Tells the words that carry a question from those that only hold it together, in eleven languages.

Words are folded (no case, no accents). A word that is an ordinary one in another of these languages (the German "war",
the French "comment") is left out only where the question's other words speak for its own language.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StopWords:
    """One language's stop words: those that are nothing else, and those that mean something in another language."""

    sure: frozenset[str]
    shared: frozenset[str] = frozenset()


def _words(sure: str, shared: str = "") -> StopWords:
    return StopWords(frozenset(sure.split()), frozenset(shared.split()))


LANGUAGES = {
    "en": _words(
        "a about am an and any are aren't as at be been being but by can can't cannot could couldn't "
        "did didn't do does doesn't doing don't done for from get gets getting give go goes going got "
        "had has have haven't having he hello her here hers hi him his how i i'd i'll i'm i've if "
        "in into is isn't it its let let like may me might mine must my need needs no nor not of "
        "off on or our ours please shall she should shouldn't so some such tell than thank thanks that "
        "the their theirs them then there these they they're this those to too upon us "
        "very want wants was wasn't we we're were weren't what when where which who whom whose "
        "why will with won't would wouldn't you you're your yours"
    ),
    "de": _words(
        "aber als auch auf bei beim bitte da damit dann das dass dem den denn der des dein deine deinem "
        "deinen deiner dich dir du durch ein eine einem einen einer eines er euch euer eure fur gibt "
        "habe haben hallo hatte hatten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ist ja kann kannst "
        "kein keine keinem keinen keiner konnen konnte konnten mein meine meinem meinen meiner mich mir "
        "mochte muss mussen nach nicht noch ob oder seid sein seine seinem seinen seiner sich sie sind "
        "sollen sollte uber unser unsere unserem unseren vom von vor wann warum waren weil welche "
        "welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieso wir wird wo "
        "wurde wurden zu zum zur diese diesem diesen dieser dieses",
        "also am an aus bin die es hat hier im in man mit soll so um und unter war was will",
    ),
    "fr": _words(
        "ai aux avec avez avoir avons bonjour c'est ce cela ces cet cette combien d'un d'une dans de "
        "des dois doit donc dont du elle elles est-ce et etaient etait etes etre eux fait faut il ils "
        "j'ai je la laquelle le lequel les lesquels leur leurs lui mais mes moi n'est ne nos notre nous "
        "ont ou par parce pas peut peuvent peux puis puis-je pourquoi qu'est-ce qu'il qu'elle qu'un "
        "qu'une quand que quel quelle quelles quels qui quoi sa sera ses sommes sont suis ta tes toi tu "
        "une veux vos votre vous y-a-t-il a-t-il est-il",
        "a au comment en est me on pour se si son sur te ton un y",
    ),
    "es": _words(
        "al algo como con cual cuales cuando cuanta cuantas cuanto cuantos de del donde e el ella ellas "
        "ellos en era eran eres esa esas ese eso esos esta estaba estan estas este esto estos estoy fue "
        "fueron gracias ha haber han hay hola la las le les lo los mas mi mis muy ni nos nosotros "
        "nuestra nuestras nuestro nuestros o para pero por porque puede pueden puedo podemos debo debe "
        "que quien quienes quiero se ser si sido sobre son soy su sus tambien tengo tiene tienen tu tus "
        "una unas uno unos usted ustedes y ya yo",
        "a es me no un u",
    ),
    "it": _words(
        "abbiamo agli ai al alla alle allo anche avere buongiorno c'e che chi ci ciao coi col con cosa "
        "cos'e cui da dagli dai dal dalla dalle dallo degli dei del della delle dello deve devo di "
        "dov'e e ed era erano essere fra gli ha hai hanno ho il io la le lei li lo loro lui ma mi mia "
        "mie miei mio nei nel nella nelle nello noi nostra nostre nostri nostro perche piu possiamo "
        "posso puo qual quale quali quando quanta quante quanti quanto quella quelle quelli quello "
        "questa queste questi questo sara siamo sono sta sua sue sugli sui sul sulla sulle sullo suo "
        "suoi tra una uno vi voi vorrei vostra vostro",
        "a come dove i in me ne no non o per se sei si su te ti tu un",
    ),
    "pt": _words(
        "ao aos aquela aquele aquilo as com como da das de dela dele dessa desse desta deste deve devo "
        "disso e ela elas ele eles em era essa essas esse esses esta estamos estao estas estava este "
        "estes estou eu foi foram ha isso isto ja la lhe mais mas meu meus minha minhas muito na nao "
        "nas nem nessa nesse nesta neste nos nossa nossas nosso nossos num numa obrigado ola onde ou "
        "para pela pelas pelo pelos pode podem podemos pois por porque posso qual quais quando quanta "
        "quantas quanto quantos que quem quero sao se seja ser sera seu seus sobre sua suas tambem tem "
        "tenho ter teu tu tua uma umas uns voce voces",
        "a do dos me no o os so um",
    ),
    "nl": _words(
        "aan als bij dat de deze dit doen door dus een en er geen had heb hebben heeft hallo het hij "
        "hoe hoeveel hun iets ik is ja jij jou jouw jullie kan kun kunnen kunt maar mag met mij mijn "
        "moet moeten naar niet nog nu of ons onze ook op te toch toen u uit uw van voor waar waarom "
        "waren wanneer wat we wel welk welke werd wie wij wil wilt worden wordt zal ze zelf zich zij "
        "zijn zo zou",
        "ben dan den der die graag in je men me om over toe was",
    ),
    "tr": _words(
        "acaba ama ben benim beni bir biri biz bize bizim boyle bu buna bunda bundan bunlar bunu bunun "
        "cunku da daha de diye gibi hangi icin ile ise kac kadar kim kime kimi kimin ki mi mu nasil ne "
        "neden nerede nereden nereye nicin o olan olarak oldu oldugu olmak olur ona onlar onlarin onu "
        "onun sen senin siz sizin su var ve veya ya yani musunuz miyim misiniz lutfen merhaba"
    ),
    "ru": _words(
        "а бы был была были было быть в вам вас во вот все всего всех вы где да для до его ее ей если "
        "есть еще же за и из или им их к как какая какие какой каком какую ко когда который которая "
        "которые которого кто куда ли мне могу можно может мой моя мы на надо нам нас наш не него нее "
        "нет ни них но ну о об он она они оно от откуда очень по пожалуйста почему при про с сам свой "
        "своя себя со сколько так также такой там те тем то того тоже той том ты у уже хочу чего чей "
        "чем что чтобы чья эта эти это этого этой этом этот я здравствуйте спасибо ваш чему кому мою"
    ),
    "ar": _words(
        "في من على الى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى كيف اين لماذا هل كم اي ايه هو "
        "هي هم هن انا نحن انت انتم كان كانت يكون تكون قد لقد ان انه انها لا لم لن ليس او و ثم كل لكن به "
        "بها له لها فيه فيها منه منها عليه عليها يمكن يمكنني هناك هنا وهو وهي وكان كما ايضا"
    ),
    "hi": _words(
        "का की के को में से पर है हैं था थी थे और या कि यह वह ये वे इस उस इन उन जो तो ही भी नहीं न एक "
        "क्या कौन कब कहाँ कहां क्यों कैसे कैसा कितना कितने कितनी किस किसने किसके किसी ने तक साथ लिए "
        "द्वारा गया गई गए कर करना करने करता किया हो होता होती होते हुआ हुई हुए रहा रही रहे सकता सकते "
        "सकती मैं हम आप मेरा मेरे मेरी अपना अपने अपनी"
    ),
}
SURE = frozenset().union(*(language.sure for language in LANGUAGES.values()))


def carrying_words(words: Sequence[str]) -> list[bool]:
    """Return for each folded word whether it carries the question; where all are stop words, all do."""
    language = max(LANGUAGES.values(), key=lambda language: sum(word in language.sure for word in words))
    speaks_it = any(word in language.sure for word in words)
    carries = [word not in SURE and not (speaks_it and word in language.shared) for word in words]
    return carries if any(carries) else [True] * len(words)
