/** Values for the gaps in questions: for each kind the ones to train on, and others that are held out. */
export interface Values {
  /** Names of parameters of this kind: in the first, second and third guise of a tool. */
  keys: readonly [string, string, string];
  /** In JSON Schema. */
  type: "string" | "integer" | "number";
  train: readonly (string | number)[];
  heldOut: readonly (string | number)[];
}

const words = (keys: string, train: string, heldOut: string): Values => ({
  keys: keys.split(", ") as unknown as Values["keys"],
  type: "string",
  train: train.split(", "),
  heldOut: heldOut.split(", "),
});

const numbers = (
  keys: string,
  type: "integer" | "number",
  train: readonly number[],
  heldOut: readonly number[],
): Values => ({
  keys: keys.split(", ") as unknown as Values["keys"],
  type,
  train,
  heldOut,
});

const count = (first: number, last: number, step = 1) =>
  Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => first + i * step);
const odd = (n: number) => n % 2 === 1;

export const kinds = {
  city: words(
    "city, place, town",
    "Paris, Rome, Berlin, Madrid, London, Vienna, Tokyo, Boston, Chicago, Dublin, Oslo, Sydney, Cairo, Mumbai, Munich, Milan, Naples, Geneva, Zurich, Warsaw, Lyon, Porto, Seville, Glasgow, Leeds, Cork, Moscow, Delhi, Lima, Bogota, Havana, Dallas, Miami, Houston, Phoenix, Detroit, Austin, Portland, Montreal, Perth, Auckland, Beijing, Osaka, Bangkok, Manila, Jakarta, Nairobi, Lagos, Tunis, Istanbul, Budapest, Brussels, Hamburg, Stockholm",
    "Lisbon, Prague, Athens, Denver, Toronto, Seoul, Helsinki",
  ),
  day: words(
    "day, date, when",
    "Monday, Tuesday, Thursday, Saturday, May 2, June 9, July 14, August 1, March 30, April 11, October 5, December 20",
    "Wednesday, Friday, Sunday",
  ),
  person: words(
    "person, name, who",
    "Anna, Ben, Clara, David, Emma, Frank, Grace, Henry, Jack, Laura, Mark, Nina, Oscar, Paula, Adam, Bella, Carl, Diana, Eric, Fiona, Gina, Hugo, Irene, Kevin, Lucy, Martin, Nora, Olivia, Peter, Rachel, Simon, Tina, Ursula, Walter, Amy, Bruno, Chloe, Daniel, Elena, Felix, Hannah, Ivan, Karen, Leo, Maria, Nathan, Rosa, Steven, Teresa, Zoe",
    "Sarah, Tom, Victor, Wendy, Alice, George, Julia",
  ),
  item: words(
    "item, product, thing",
    "laptop, chair, lamp, bicycle, camera, jacket, table, phone, guitar, backpack, desk, sweater, clock, blender, kettle, keyboard, monitor, tent, umbrella, wallet, shovel, ladder, vase, carpet, pillow, blanket, drill, hammer, piano, violin, scooter, suitcase, scarf, ring, toaster, freezer, Kodak camera, Swiss knife, Lego castle",
    "printer, sofa, mirror, watch, helmet",
  ),
  language: words(
    "language, into, target",
    "French, German, Spanish, Italian, Russian, Turkish, Swedish, Hindi, Arabic, Korean, Latin, Danish, Czech, Irish, Thai, Welsh",
    "Dutch, Polish, Greek",
  ),
  word: words(
    "word, text, term",
    "house, water, bread, friend, garden, window, summer, bridge, apple, river, mountain, doctor, cheese, butter, flower, street, teacher, market, island, silver, morning, evening, sugar, letter, music, ocean, planet, rabbit, horse, sister, brother, basket, candle, engine, pencil, pocket, ticket",
    "forest, kitchen, winter, school",
  ),
  team: words(
    "team, club, side",
    "Lions, Tigers, Eagles, Sharks, Bears, Panthers, Falcons, Dragons, Rockets, Giants, Knights, Pirates, Rangers, Comets, Foxes, Cobras, Vikings, Saints, Badgers, Otters",
    "Wolves, Hawks, Bulls",
  ),
  restaurant: words(
    "restaurant, venue, at",
    "Blue Door, Casa Luna, Green Leaf, Old Mill, Red Lantern, Silver Spoon, Happy Fish, Corner House, Little Rome, Stone Bridge, Black Swan, Garden Court, Sunset Grill, Royal Oak, Lemon Tree, Market Hall, Full Moon, Station Cafe, Olive Branch, Harbor View",
    "Golden Fork, Sea House, White Rose",
  ),
  company: words(
    "company, firm, business",
    "Apple, Boeing, Ford, Nike, Intel, Pfizer, Microsoft, Toyota, Siemens, Nestle, Walmart, Disney, Oracle, Adobe, Honda, Bayer, Adidas, Philips, Samsung, Netflix, Starbucks, Unilever, Volvo, Nokia",
    "Tesla, Sony, Shell",
  ),
  room: words(
    "room, area, space",
    "kitchen, bedroom, hall, office, attic, nursery, living room, dining room, Room 4, Room 12, Studio B",
    "bathroom, garage, cellar",
  ),
  shop: words(
    "shop, store, building",
    "bakery, pharmacy, library, post office, butcher, hotel, gym, school, City Bakery, Book Barn, Corner Shop, Toy Town",
    "bank, museum, market",
  ),
  amount: numbers(
    "amount, sum, dollars",
    "number",
    count(11, 97).filter(odd),
    count(12, 98).filter((n) => !odd(n)),
  ),
  percent: numbers(
    "percent, share, rate",
    "integer",
    [5, 8, 10, 12, 15, 18, 25, 40, 45, 50, 60, 65, 70, 75, 80],
    [20, 30, 35, 55],
  ),
  hour: numbers("hour, time, clock", "integer", [1, 2, 4, 5, 7, 8, 10, 11, 12], [3, 6, 9]),
  people: numbers("people, guests, seats", "integer", [2, 3, 5, 6, 8, 10, 11, 12], [4, 7, 9]),
  song: words(
    "song, track, title",
    "Blue Moon, Hey Jude, Yesterday, Imagine, Thriller, Summer Rain, Golden Days, Slow Train, Night Owl, Paper Boats, River Song, Old Friends, Silent Snow, Home Again, Red Roses, Wild Horses, Last Dance, Morning Light, Lost Love, Brown Eyes",
    "Happy Days, Long Road, City Lights, First Kiss",
  ),
  film: words(
    "film, movie, show",
    "Titanic, Alien, Casablanca, Gladiator, Psycho, The Kid, Night Train, Deep Water, The Visitor, Iron Hand, Lost City, Sky High, Cold Heart, The Letter, Big Fish, Rain Man, The Storm, Last Summer, High Noon, Ghost Town",
    "Avatar, The Piano, Dark River, Moonlight",
  ),
  food: words(
    "food, dish, meal",
    "pizza, Caesar salad, Greek salad, Swiss cheese, rice, pasta, soup, salad, chocolate, ice cream, pancakes, yogurt, bacon, popcorn, a burger, a banana, an egg, a cookie, a sandwich, a bagel, fried fish, roast beef, apple pie, tomato soup, a donut",
    "sushi, a muffin, cream cheese, a steak",
  ),
  country: words(
    "country, land, nation",
    "France, Italy, Spain, Germany, Poland, Japan, India, Brazil, Canada, Mexico, Egypt, Kenya, Norway, Greece, Turkey, Peru, Chile, Cuba, Iran, Iraq, Nepal, Austria, Belgium, Ireland",
    "Portugal, Sweden, Argentina, Vietnam",
  ),
  parcel: words(
    "parcel, code, package",
    "A12, B47, C85, D31, E96, F20, G58, H73, K19, L64, M82, N35, P41, R77, S93, T26, U50, V68, W14, X39",
    "A57, K83, M21, T64",
  ),
  minutes: numbers(
    "minutes, time, length",
    "integer",
    [2, 3, 4, 6, 7, 8, 9, 10, 12, 14, 20, 25, 40, 45, 50],
    [5, 15, 30],
  ),
  degrees: numbers("degrees, temperature, level", "number", [15, 16, 17, 19, 20, 22, 24, 25], [18, 21, 23]),
  currency: words(
    "currency, money, unit",
    "euros, pounds, crowns, dinars, pesos, reals, shillings, rubles, liras, kroner",
    "yen, francs, rupees",
  ),
} satisfies Record<string, Values>;

export type Kind = keyof typeof kinds;
