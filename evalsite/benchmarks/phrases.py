"""Sentences and words of invented airline conversations. Fields in braces are filled per trial."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


AGENT = (
    "Thank you for providing your user ID, {name}. I have found your profile and your {n} trips.",
    "I've pulled up reservation {reservation}: {origin} to {destination} on {date}, in {cabin}.",
    "The difference in price comes to **${amount}**, and it would be charged to your card on file.",
    "Unfortunately, basic economy flights cannot be modified once they have been booked.",
    "I can cancel reservation {reservation} and refund ${amount} to {payment} in 5 to 7 days.",
    "Before I go ahead, please confirm the following details with a clear yes:",
    "- Flight {flight} from {origin} to {destination}, leaving on {date} at {time}",
    "- Cabin: {cabin}, with {n} checked bags and no travel insurance",
    "- Payment: ${amount} on {payment}",
    "Your new itinerary leaves {origin} at {time} and arrives the same day; {n} seats are left.",
    "Since the reservation was made more than 24 hours ago, I need the reason for cancelling.",
    "I understand how frustrating this is, and I am sorry for the trouble with flight {flight}.",
    "As a {level} member you may check {n} bags for free on each flight in {cabin}.",
    "I'm not able to offer compensation for that, because the policy does not allow it here.",
    "The cheapest option I found is {flight}, at ${amount} for each passenger in {cabin}.",
    "Everything is done. Is there anything else that I can help you with today?",
    "Could you tell me the reservation ID, or the cities and the date of the trip in question?",
    "Let me look up direct flights from {origin} to {destination} on {date} for you.",
    "Your certificate {payment} has been used in full; the rest of ${amount} stays on the card.",
    "To change the passenger to {name} {surname}, I also need the date of birth as in the passport.",
    "I have checked all of your reservations, and {reservation} is the only one with a delay.",
    "This is a one-stop connection by way of {origin}, with {n} hours between the two flights.",
)
USER = (
    "Hi, my user ID is {user}. I need to change my flight on {date}, please.",
    "Yes, please go ahead with that. Use {payment} for the difference.",
    "I think it is the one from {origin} to {destination}, but I don't remember the ID.",
    "No, I don't want insurance. I would like the cheapest {cabin} seat that you have.",
    "Can you make an exception? The other agent told me that it was no problem at all.",
    "My budget is ${amount} for everything, so if it is more than that I'd rather cancel.",
    "How much would I get back for {reservation}, and how many bags are included?",
    "That works for me. And what about my other trip, the one with flight {flight}?",
    "It's for {name} {surname}, born in {year}. She will travel with me.",
    "Thanks, that is all I needed. Have a nice day!",
)
LOOSE_WORDS = _words(
    "actually again already also although always around ask available away back because become "
    "before began better between both bring call careful carry case certain change check clear "
    "close come complete condition confirm connect consider correct cost could country course "
    "current customer day decide delay detail different difficult direct discuss document done "
    "during each early easy eight either else email enough evening every exact example expect "
    "explain extra fact fair family fare fee few final find first fly follow forget form found "
    "four free friend full gate general get give gladly grant great group half happen hard hear "
    "help hold home hope hotel hour however idea important include indeed inform instead issue "
    "itinerary join just keep kind know large last late later least leave less letter likely "
    "limit line list little local long look lost lower luggage make manage many matter maybe "
    "meal mean meet member mention message might mind minute miss moment money month morning "
    "move must name near need never next night note nothing notice now number offer office often "
    "once one online only open option order other outside over own page paid part pass past pay "
    "people perhaps person phone place plan please point policy possible prefer present price "
    "problem process proof provide question quick quite rather reach read ready real reason "
    "receive record regret remain remember remove repeat reply report request require rest "
    "return review right round rule safe same save say schedule seat second see seem select send "
    "separate serve service several share short should show side similar since single sit six "
    "small solve some soon sorry sort speak special stand start state station stay step still "
    "stop story such suggest sure switch system take talk team tell ten term than there thing "
    "think third though three ticket time today together told tomorrow too total touch toward "
    "travel trip true trust try turn two type under unless until upgrade upon use usual vacation "
    "value very visit voucher wait want watch way week weekend welcome well whole why window "
    "wish within without wonder word work world worry worth would wrong year yesterday yet"
)
GIVEN_NAMES = _words(
    "Aino Bela Carla Davi Ebba Femi Goran Hana Ines Jonas Kaya Lev Mira Nils Odile Pavel Quinn "
    "Rosa Sami Tomo Ulla Vera Wim Xenia Yann Zora"
)
SURNAMES = _words(
    "Abel Brandt Costa Duval Eriksen Farkas Gruber Holm Ivanov Jansen Kovacs Lund Moreau Nowak "
    "Okafor Petrov Quist Rossi Silva Tanaka Ueda Vogel Weiss Yilmaz Zeman"
)
AIRPORTS = _words("ATL BOS CLT DEN DFW DTW EWR IAH JFK LAS LAX LGA MCO MIA MSP ORD PHL PHX SEA SFO")
STREETS = _words("Ash Birch Cedar Dogwood Elm Fir Hazel Juniper Larch Maple Oak Pine Rowan Willow")
CABINS = ("basic_economy", "economy", "business")
LEVELS = ("regular", "silver", "gold")
