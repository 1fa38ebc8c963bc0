// Twenty-nine tools of everyday kinds, each in three guises, and four more that training never sees. They answer only from
// their arguments.
import { type BaseTool, tool } from "cria";
import { type Kind, kinds } from "./values.js";

/** Values by their kinds. */
export type Given = Partial<Record<Kind, string | number>>;

/** A tool, and how people ask for it: `{city}` in a phrasing is the value of that kind. */
export interface Design {
  /** Names in its guises: a model that reads the list of tools need not know the name. */
  names: readonly string[];
  description: string;
  takes: readonly Kind[];
  answer: (given: Given) => string | number;
  /** The final answer of a demonstration, with the tool's answer as `{}`. */
  said: string;
  questions: readonly string[];
  /** Phrasings that are held out. */
  otherQuestions: readonly string[];
  /** For a tool whose answer others take: the kind of the answer, and phrases that stand for it in a question. */
  gives?: { kind: Kind; phrases: readonly string[]; otherPhrases: readonly string[] };
  /** Whether training never sees it. */
  isHeldOut?: boolean;
}

/** A number from a text, the same everywhere (FNV-1a). */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ letter.codePointAt(0)!, 0x01000193);
  state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
  return (state ^ (state >>> 13)) >>> 0;
}

const key = (given: Given) => JSON.stringify(Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1)));
const pickNumber = (given: Given, first: number, last: number, salt = "") =>
  first + (hash(salt + key(given)) % (last - first + 1));
/**
 * A value of a kind, held-out ones for held-out arguments too: an answer never has a value that its question's side
 * lacks.
 */
function pickValue(kind: Kind, given: Given, isHeldOut: boolean) {
  const values = isHeldOut ? kinds[kind].heldOut : kinds[kind].train;
  return values[hash(key(given)) % values.length]!;
}
const has = (kind: Kind, value: string | number | undefined) =>
  (kinds[kind].heldOut as readonly (string | number)[]).includes(value!);
const cents = (value: number) => Math.round(value * 100) / 100;

export const designs: readonly Design[] = [
  {
    names: ["weather", "get_forecast", "city_temperature"],
    description: "forecast for a city",
    takes: ["city", "day"],
    answer: (given) => pickNumber(given, 1, 35),
    said: "It will be {} degrees.",
    questions: [
      "What will the weather be in {city} on {day}?",
      "How warm will it get in {city} on {day}?",
      "Give me the forecast for {city} for {day}.",
      "On {day} I will be in {city}. How warm will it be?",
      "How hot will {city} be on {day}?",
      "Check the weather in {city} on {day}.",
      "I travel to {city} on {day}. What weather can I expect?",
      "What does the forecast say for {city} on {day}?",
      "Should I take an umbrella to {city} on {day}?",
      "Will it be cold in {city} on {day}?",
    ],
    otherQuestions: ["Will I need a coat in {city} on {day}?", "Tell me the temperature to expect on {day} in {city}."],
  },
  {
    names: ["local_time", "clock_in", "time_at"],
    description: "the time now in a city",
    takes: ["city"],
    answer: (given) => `${pickNumber(given, 10, 23)}:${pickNumber(given, 10, 59, "minute")}`,
    said: "It is {}.",
    questions: [
      "What time is it in {city}?",
      "Tell me the local time in {city}.",
      "How late is it now in {city}?",
      "I want to call someone in {city}. What time is it there?",
      "Which time do they have in {city}?",
      "Is it late in {city} now? Check the time.",
      "Find out what time it is in {city}.",
      "My friend is in {city}. What is her local time?",
    ],
    otherQuestions: ["What does the clock say in {city}?", "Give me the current time in {city}."],
  },
  {
    names: ["convert_money", "exchange", "to_currency"],
    description: "changes dollars into a currency",
    takes: ["amount", "currency"],
    answer: ({ amount, currency }) => cents(Number(amount) * (0.5 + (hash(String(currency)) % 50) / 100)),
    said: "That is {}.",
    questions: [
      "How much is {amount} dollars in {currency}?",
      "Convert {amount} dollars to {currency}.",
      "What do I get in {currency} for {amount} dollars?",
      "Change {amount} dollars into {currency}.",
      "Exchange {amount} dollars for {currency}.",
      "I need {amount} dollars in {currency}.",
      "Tell me how many {currency} I get for {amount} dollars.",
      "How many {currency} are {amount} dollars?",
      "I have {amount} dollars and want {currency}.",
    ],
    otherQuestions: [
      "I have {amount} dollars. How many {currency} is that?",
      "What are {amount} dollars worth in {currency}?",
    ],
  },
  {
    names: ["find_phone", "phone_number", "contact"],
    description: "a person's phone number",
    takes: ["person"],
    answer: (given) => `555-${pickNumber(given, 1000, 9999)}`,
    said: "The number is {}.",
    questions: [
      "What is the phone number of {person}?",
      "Look up the phone number of {person}.",
      "How can I call {person}? I need the number.",
      "Give me the number of {person}, please.",
      "I have to phone {person}. What is the number?",
      "Do you have the phone number of {person}?",
      "Find the number of {person} so that I can call.",
      "What number do I dial for {person}?",
    ],
    otherQuestions: ["Under which number can I reach {person}?", "Find the telephone number of {person}."],
  },
  {
    names: ["find_home", "home_city", "residence"],
    description: "the city where a person lives",
    takes: ["person"],
    answer: (given) => pickValue("city", given, has("person", given["person"])),
    said: "The city is {}.",
    questions: [
      "Where does {person} live?",
      "In which city does {person} live?",
      "What is the home city of {person}?",
      "Tell me the city where {person} lives.",
      "Which city does {person} live in?",
      "I want to visit {person}. Which city is that?",
      "Find the city of {person}.",
      "Where is the home of {person}?",
    ],
    otherQuestions: ["Which city is home to {person}?", "Find out where {person} has a home."],
    gives: {
      kind: "city",
      phrases: [
        "the city where {person} lives",
        "the home city of {person}",
        "the city of {person}",
        "the town where {person} lives",
      ],
      otherPhrases: ["the city that {person} lives in"],
    },
  },
  {
    names: ["find_captain", "team_captain", "leader_of"],
    description: "the captain of a team",
    takes: ["team"],
    answer: (given) => pickValue("person", given, has("team", given["team"])),
    said: "The captain is {}.",
    questions: [
      "Who is the captain of the {team}?",
      "Name the captain of the {team}.",
      "Which player is captain of the {team}?",
      "Tell me who leads the {team} as captain.",
      "Find out who is captain of the {team}.",
      "Who leads the {team}?",
      "The {team} play today. Who is their captain?",
      "I need the name of the captain of the {team}.",
    ],
    otherQuestions: ["Who captains the {team}?", "Find the captain that the {team} have."],
    gives: {
      kind: "person",
      phrases: ["the captain of the {team}", "the {team} captain", "the leader of the {team}"],
      otherPhrases: ["the player who captains the {team}"],
    },
  },
  {
    names: ["price", "item_cost", "check_price"],
    description: "the price of an item in dollars",
    takes: ["item"],
    answer: (given) => pickValue("amount", given, has("item", given["item"])),
    said: "It costs {} dollars.",
    questions: [
      "How much is the {item}?",
      "What does the {item} cost?",
      "Tell me the price of the {item}.",
      "How many dollars do you want for the {item}?",
      "Check the price of the {item}.",
      "I want to buy the {item}. What is the price?",
      "What would I pay for the {item}?",
      "Is the {item} expensive? Tell me the price.",
    ],
    otherQuestions: ["What is the {item} selling for?", "Look up what the {item} costs."],
    gives: {
      kind: "amount",
      phrases: ["the price of the {item}", "what the {item} costs", "the {item} price"],
      otherPhrases: ["the cost of the {item}"],
    },
  },
  {
    names: ["tip", "tip_amount", "calculate_tip"],
    description: "the tip for a bill",
    takes: ["amount", "percent"],
    answer: ({ amount, percent }) => cents((Number(amount) * Number(percent)) / 100),
    said: "The tip is {} dollars.",
    questions: [
      "What is a tip of {percent} percent on {amount} dollars?",
      "The bill is {amount} dollars. How much is a {percent} percent tip?",
      "Work out {percent} percent tip for a bill of {amount} dollars.",
      "Calculate a {percent} percent tip on {amount} dollars.",
      "How much is {percent} percent tip for {amount} dollars?",
      "We paid {amount} dollars. What is a {percent} percent tip?",
      "Tell me the tip at {percent} percent for a bill of {amount} dollars.",
      "I pay {amount} dollars and tip {percent} percent. What is the tip?",
    ],
    otherQuestions: ["I want to tip {percent} percent on a bill of {amount} dollars. How much is it?"],
  },
  {
    names: ["translate", "dictionary", "foreign_word"],
    description: "a word in another language",
    takes: ["word", "language"],
    answer: (given) => makeWord(hash(key(given))),
    said: 'It is "{}".',
    questions: [
      "What is {word} in {language}?",
      "Translate {word} into {language}.",
      "How do you say {word} in {language}?",
      "Give me the {language} word for {word}.",
      "What does {word} mean in {language}?",
      "Say {word} in {language}.",
      "Tell me the {language} word for {word}.",
      "I am learning {language}. What is {word}?",
    ],
    otherQuestions: ["What would {word} be called in {language}?", "I need the word {word} in {language}."],
  },
  {
    names: ["set_alarm", "wake_up", "new_alarm"],
    description: "sets an alarm at a full hour",
    takes: ["day", "hour"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Alarm {} is set.",
    questions: [
      "Set an alarm for {day} at {hour}.",
      "Wake me at {hour} on {day}.",
      "I need an alarm on {day} at {hour}.",
      "Please set my alarm to {hour} on {day}.",
      "Set the alarm to {hour} on {day}.",
      "Make an alarm for {hour} on {day}.",
      "On {day} wake me at {hour}.",
      "I want to wake up at {hour} on {day}.",
    ],
    otherQuestions: ["On {day} I must get up at {hour}. Set an alarm.", "Let the alarm ring at {hour} on {day}."],
  },
  {
    names: ["book_table", "reserve", "restaurant_booking"],
    description: "books a table in a restaurant",
    takes: ["restaurant", "people"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Table {} is booked.",
    questions: [
      "Book a table for {people} at {restaurant}.",
      "Reserve a table at {restaurant} for {people} people.",
      "We are {people}. Get us a table at {restaurant}.",
      "I want to eat at {restaurant} with {people} people. Book it.",
      "Get a reservation at {restaurant} for {people}.",
      "Can you book {restaurant} for {people} people?",
      "There are {people} of us. Reserve a table at {restaurant}.",
      "Make a booking for {people} at {restaurant}.",
    ],
    otherQuestions: [
      "Please reserve {restaurant} for {people} guests.",
      "Get a table for {people} people in {restaurant}.",
    ],
  },
  {
    names: ["stock", "share_price", "stock_quote"],
    description: "the share price of a company",
    takes: ["company"],
    answer: (given) => pickNumber(given, 100, 999),
    said: "It stands at {} dollars.",
    questions: [
      "What is the share price of {company}?",
      "How much is a share of {company}?",
      "Where does the stock of {company} stand?",
      "Give me the stock price of {company}.",
      "Look up the shares of {company}.",
      "What is {company} stock at?",
      "I own shares of {company}. What is the price?",
      "Find the share price of {company}.",
      "How is {company} doing at the stock exchange?",
      "Check the price of {company} shares.",
    ],
    otherQuestions: ["What do {company} shares trade at?", "Check the stock of {company}."],
  },
  {
    names: ["website", "find_site", "homepage"],
    description: "the website of a company",
    takes: ["company"],
    answer: (given) => `www.${String(given["company"]).toLowerCase()}${pickNumber(given, 10, 99)}.com`,
    said: "The site is {}.",
    questions: [
      "What is the website of {company}?",
      "Find the website of {company}.",
      "Where do I find {company} on the web?",
      "Look up the site of {company}.",
      "Give me the address of the {company} website.",
      "Which website does {company} have?",
      "I want to read about {company} on its own site. Which one is it?",
      "Tell me the homepage of {company}.",
      "Where is {company} online?",
      "Show me {company} on the web.",
    ],
    otherQuestions: ["Under which web address is {company}?", "Find {company} on the internet."],
  },
  {
    names: ["play_song", "music", "start_track"],
    description: "plays a song",
    takes: ["song"],
    answer: (given) => pickNumber(given, 100, 999),
    said: "It plays for {} seconds.",
    questions: [
      "Play {song}.",
      "Put on the song {song}.",
      "I want to hear {song}.",
      "Start the song {song}, please.",
      "Can you play {song} for me?",
      "Let me listen to {song}.",
      "It is time for {song}. Play it.",
      "Play the song {song} now.",
      "Turn the music on: {song}.",
      "I feel like {song}. Start it.",
    ],
    otherQuestions: ["I would love to listen to {song} now.", "Turn on {song}, please."],
  },
  {
    names: ["director", "directed_by", "film_maker"],
    description: "who made a film",
    takes: ["film"],
    answer: (given) => pickValue("person", given, has("film", given["film"])),
    said: "It was made by {}.",
    questions: [
      "Who made the film {film}?",
      "Who directed {film}?",
      "Name the director of {film}.",
      "Tell me who directed the film {film}.",
      "Who is the director of {film}?",
      "I watched {film}. Who made it?",
      "Find out who made {film}.",
      "Which director made {film}?",
    ],
    otherQuestions: ["Whose film is {film}?", "Look up the director of the movie {film}."],
    gives: {
      kind: "person",
      phrases: ["the director of {film}", "the person who made {film}"],
      otherPhrases: ["the person who directed {film}"],
    },
  },
  {
    names: ["book_cinema", "movie_ticket", "film_seat"],
    description: "books a seat for a film",
    takes: ["film", "hour"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Seat {} is yours.",
    questions: [
      "Book a seat for {film} at {hour}.",
      "I want to see {film} at {hour}. Get me a ticket.",
      "Get a ticket for {film} at {hour}.",
      "Reserve a seat for the film {film} at {hour}.",
      "Buy me a ticket for {film} at {hour}.",
      "At {hour} I want to watch {film}. Book a seat.",
      "One seat for {film} at {hour}, please.",
      "Let me see {film} at {hour}.",
    ],
    otherQuestions: ["Get me into {film} at {hour}.", "Please book the film {film} for me at {hour}."],
  },
  {
    names: ["distance", "how_far", "kilometers_to"],
    description: "the distance from here to a city",
    takes: ["city"],
    answer: (given) => pickNumber(given, 100, 999),
    said: "It is {} kilometers away.",
    questions: [
      "How far is {city}?",
      "How many kilometers is it to {city}?",
      "What is the distance to {city}?",
      "I drive to {city}. How far is it?",
      "Tell me how far away {city} is.",
      "Is {city} far from here? Give me the distance.",
      "Find the distance from here to {city}.",
    ],
    otherQuestions: ["How long is the way to {city}?", "How many kilometers must I drive to {city}?"],
  },
  {
    names: ["next_train", "train_time", "departure"],
    description: "when the train to a city leaves",
    takes: ["city", "day"],
    answer: (given) => `${pickNumber(given, 10, 23)}:${pickNumber(given, 10, 59, "minute")}`,
    said: "It leaves at {}.",
    questions: [
      "When does the train to {city} leave on {day}?",
      "Which train can I take to {city} on {day}?",
      "I take the train to {city} on {day}. When does it go?",
      "Find a train to {city} for {day}.",
      "On {day} I need a train to {city}. When does it leave?",
      "What time is the train to {city} on {day}?",
      "Tell me when the {day} train to {city} leaves.",
    ],
    otherQuestions: ["At what time does the train go to {city} on {day}?", "Look for a train on {day} to {city}."],
  },
  {
    names: ["add_to_list", "shopping_list", "note_item"],
    description: "puts an item on the shopping list",
    takes: ["item"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "It is number {} on the list.",
    questions: [
      "Put the {item} on my shopping list.",
      "Add a {item} to the list.",
      "I must not forget to buy a {item}. Put it on the list.",
      "Note the {item} on my list.",
      "Write the {item} on the shopping list.",
      "My list needs a {item}.",
      "Add the {item} to my shopping list.",
    ],
    otherQuestions: ["Please put a {item} on the list for me.", "The {item} belongs on my shopping list."],
  },
  {
    names: ["set_timer", "countdown", "start_timer"],
    description: "starts a timer of some minutes",
    takes: ["minutes"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Timer {} runs.",
    questions: [
      "Set a timer for {minutes} minutes.",
      "Start a timer of {minutes} minutes.",
      "Remind me in {minutes} minutes.",
      "Count down {minutes} minutes.",
      "The eggs need {minutes} minutes. Start a timer.",
      "I need a timer for {minutes} minutes.",
      "Tell me when {minutes} minutes are over.",
    ],
    otherQuestions: ["Let a timer run for {minutes} minutes.", "The tea takes {minutes} minutes. Set the timer."],
  },
  {
    names: ["calories", "energy_of", "nutrition"],
    description: "the calories of a food",
    takes: ["food"],
    answer: (given) => pickNumber(given, 100, 999),
    said: "It has {} calories.",
    questions: [
      "How many calories does {food} have?",
      "What are the calories of {food}?",
      "Tell me the calories of {food}.",
      "I had {food} for lunch. How many calories is that?",
      "Look up how many calories {food} has.",
      "Check the calories in {food}.",
      "How much energy is in {food}?",
    ],
    otherQuestions: ["I ate {food}. Count the calories.", "Find the calories that {food} has."],
  },
  {
    names: ["track_parcel", "parcel_status", "shipment"],
    description: "how many days until a parcel comes",
    takes: ["parcel"],
    answer: (given) => pickNumber(given, 2, 30),
    said: "It comes in {} days.",
    questions: [
      "Where is parcel {parcel}?",
      "When does parcel {parcel} come?",
      "Track the parcel {parcel}.",
      "I wait for parcel {parcel}. When will it be here?",
      "How long until I get parcel {parcel}?",
      "Check parcel {parcel} for me.",
      "My parcel has the number {parcel}. When does it come?",
    ],
    otherQuestions: ["Has parcel {parcel} been sent? When will it come?", "Find out when I get the parcel {parcel}."],
  },
  {
    names: ["set_heating", "heat_room", "thermostat"],
    description: "sets the heating of a room in degrees",
    takes: ["room", "degrees"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Heater {} is set.",
    questions: [
      "Heat the {room} to {degrees} degrees.",
      "Set the heating in the {room} to {degrees} degrees.",
      "Make it {degrees} degrees in the {room}.",
      "The {room} is too cold. Heat it to {degrees} degrees.",
      "I want {degrees} degrees in the {room}.",
      "Warm the {room} to {degrees} degrees.",
      "Turn the heater of the {room} to {degrees} degrees.",
    ],
    otherQuestions: ["Let it be {degrees} degrees in the {room}.", "Bring the {room} up to {degrees} degrees."],
  },
  {
    names: ["population", "inhabitants", "people_in"],
    description: "how many million people live in a country",
    takes: ["country"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "It has {} million people.",
    questions: [
      "How many people live in {country}?",
      "What is the population of {country}?",
      "Tell me how many million people {country} has.",
      "How large is the population of {country}?",
      "Look up the population of {country}.",
      "How many million live in {country}?",
      "Give me the number of people in {country}.",
    ],
    otherQuestions: ["How many inhabitants does {country} have?", "Find out how many people are in {country}."],
  },
  {
    names: ["rhyme", "find_rhyme", "rhymes_with"],
    description: "a rhyme for a word",
    takes: ["word"],
    answer: (given) => makeWord(hash(key(given))),
    said: 'A rhyme is "{}".',
    questions: [
      "What rhymes with {word}?",
      "Find a rhyme for {word}.",
      "I need a rhyme for {word}.",
      "Give me a word that rhymes with {word}.",
      "My poem ends with {word}. What rhymes with it?",
      "Which word rhymes with {word}?",
      "Tell me a rhyme for the word {word}.",
    ],
    otherQuestions: ["Look for a word that rhymes with {word}.", "Can you find a rhyme on {word}?"],
  },
  {
    names: ["walk_to", "minutes_to", "shop_distance"],
    description: "how many minutes it takes to walk to a shop",
    takes: ["shop"],
    answer: (given) => pickNumber(given, 3, 40),
    said: "It takes {} minutes.",
    questions: [
      "How long do I walk to the {shop}?",
      "How many minutes is it to the {shop}?",
      "I walk to the {shop}. How long does it take?",
      "Is the {shop} near? Tell me the minutes.",
      "How far is it on foot to the {shop}?",
      "Tell me how long the walk to the {shop} is.",
      "How many minutes will I need to the {shop}?",
    ],
    otherQuestions: ["How long is the walk to the {shop}?", "On foot, how many minutes to the {shop}?"],
  },
  {
    names: ["wifi_password", "wifi", "network_key"],
    description: "the password of a restaurant's wifi",
    takes: ["restaurant"],
    answer: (given) =>
      `${String(given["restaurant"]).toLowerCase().replaceAll(" ", "")}${pickNumber(given, 10, 99)}@guest`,
    said: "The password is {}.",
    questions: [
      "What is the wifi password of {restaurant}?",
      "I sit in {restaurant} and need the wifi.",
      "How do I get into the wifi at {restaurant}?",
      "Find the password for the wifi of {restaurant}.",
      "Give me the wifi password at {restaurant}.",
      "Which password does the wifi in {restaurant} have?",
      "Look up the wifi of {restaurant}.",
    ],
    otherQuestions: [
      "I want to go online at {restaurant}. Which password?",
      "Tell me the wifi password in {restaurant}.",
    ],
  },
  {
    names: ["chat_name", "messenger", "handle_of"],
    description: "a person's name in the chat",
    takes: ["person"],
    answer: (given) => `${String(given["person"]).toLowerCase()}.${pickNumber(given, 10, 99)}#chat`,
    said: "The name is {}.",
    questions: [
      "What is the chat name of {person}?",
      "Under which name does {person} chat?",
      "Find {person} in the chat.",
      "I want to chat with {person}. What is the name there?",
      "Which name does {person} have in the chat?",
      "Look up the chat name of {person}.",
      "Tell me how {person} is called in the chat.",
    ],
    otherQuestions: ["How do I find {person} in the chat?", "Give me the name that {person} has in the chat."],
  },
  {
    names: ["find_shelf", "item_place", "where_is"],
    description: "where an item lies in the store",
    takes: ["item"],
    answer: (given) => `row ${pickNumber(given, 2, 30)}, shelf ${pickNumber(given, 2, 9, "shelf")}`,
    said: "It is in {}.",
    questions: [
      "Where is the {item} in the store?",
      "In which row do I find the {item}?",
      "I look for the {item}. Which shelf is it on?",
      "Show me where the {item} lies.",
      "Which shelf has the {item}?",
      "Find the shelf of the {item}.",
      "Tell me where the store keeps the {item}.",
    ],
    otherQuestions: ["Where in the store can I find the {item}?", "On which shelf does the {item} lie?"],
  },
  {
    names: ["find_email"],
    description: "a person's email address",
    takes: ["person"],
    answer: (given) => `${String(given["person"]).toLowerCase()}${pickNumber(given, 10, 99)}@mail.com`,
    said: "The address is {}.",
    questions: [],
    otherQuestions: [
      "What is the email address of {person}?",
      "Look up the email of {person}.",
      "I want to write to {person}. Which email address do I use?",
    ],
    isHeldOut: true,
  },
  {
    names: ["air_quality"],
    description: "how clean the air in a city is",
    takes: ["city"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "The index is {}.",
    questions: [],
    otherQuestions: [
      "How good is the air in {city}?",
      "What is the air quality in {city}?",
      "Tell me how clean the air is in {city}.",
    ],
    isHeldOut: true,
  },
  {
    names: ["dim_light"],
    description: "sets the light of a room",
    takes: ["room", "percent"],
    answer: (given) => pickNumber(given, 10, 99),
    said: "Lamp {} is set.",
    questions: [],
    otherQuestions: [
      "Set the light in the {room} to {percent} percent.",
      "Dim the {room} to {percent} percent.",
      "Make the light in the {room} {percent} percent bright.",
    ],
    isHeldOut: true,
  },
  {
    names: ["opening_hours"],
    description: "when a shop opens",
    takes: ["shop", "day"],
    answer: (given) => `${pickNumber(given, 6, 11)}:${pickNumber(given, 10, 59, "minute")}`,
    said: "It opens at {}.",
    questions: [],
    otherQuestions: [
      "When does the {shop} open on {day}?",
      "What are the opening hours of the {shop} on {day}?",
      "From what time can I go to the {shop} on {day}?",
    ],
    isHeldOut: true,
  },
];

function makeWord(number: number): string {
  const [consonants, vowels] = ["bdfglmnprst", "aeiou"];
  let rest = number;
  const draw = (letters: string) => {
    const letter = letters[rest % letters.length]!;
    rest = Math.floor(rest / letters.length);
    return letter;
  };
  return Array.from({ length: 3 }, () => draw(consonants) + draw(vowels)).join("");
}

/** A tool in one of its guises. */
export interface Guise {
  design: Design;
  name: string;
  /** Its parameters' kinds. */
  parameters: Readonly<Record<string, Kind>>;
}

export const guises: readonly Guise[] = designs.flatMap((design) =>
  design.names.map((name, i) => ({
    design,
    name,
    parameters: Object.fromEntries(design.takes.map((kind) => [kinds[kind].keys[i]!, kind])),
  })),
);

/** The tools, for `tools.yaml` and for training in code. */
export const tools: readonly BaseTool[] = guises.map(({ design, name, parameters }) =>
  tool({
    name,
    description: design.description,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(parameters).map(([key, kind]) => [key, { type: kinds[kind].type }]),
      ),
      required: Object.keys(parameters),
      additionalProperties: false,
    },
    execute: (given) =>
      String(design.answer(Object.fromEntries(Object.entries(parameters).map(([key, kind]) => [kind, given[key]])))),
  }),
);
