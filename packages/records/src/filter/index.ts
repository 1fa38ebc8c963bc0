export { type FilterField, type FilterType, type FilterValue, filterFamilies, filterFields } from "./filter-fields.js";
export { type BindField, type Filter, parseFilter, parseFilterOf } from "./parse-filter.js";
