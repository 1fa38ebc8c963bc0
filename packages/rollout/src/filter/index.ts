export { type FilterField, type FilterType, type FilterValue, filterFamilies, filterFields } from "./filter-fields.js";
export { type Filter, parseFilter } from "./parse-filter.js";
