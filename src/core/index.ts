/**
 * The ground floor, which every module may import: expected failures and their reasons, descriptions of errors, reading of JSON, the
 * distance of two texts, texts without controls, own keys of tables, groups, short lists, remembered values, minutes, hours and days; the
 * program's own files; how requests are sent to other servers. Imports nothing.
 */
export { computeDistance, findNearest } from './distance.ts'
export { describeError, findCode, hasCode, isTimeout, scrub } from './errors.ts'
export { type Failed, Failing, fail, isFailure, mapOrFail } from './failure.ts'
export type { Fetch } from './fetch.ts'
export { formatCount } from './format-count.ts'
export { groupBy } from './group-by.ts'
export { HOW } from './how.ts'
export { isRecord, parseJson, readText, toRecord, toRecords } from './json.ts'
export { findOwn } from './own.ts'
export { findOwnProgram, listOwnFolder, readOwnFile } from './own-files.ts'
export {
  escapeLine,
  escapeLines,
  isNewUsername,
  isPlainLine,
  isUsername,
  NEW_USERNAME_RULE,
  ON_PLAIN_LINE,
  removeControls,
  toPlainLine,
} from './plain-text.ts'
export { takeRandomBytes } from './random.ts'
export { readWhole } from './read-whole.ts'
export { remember } from './remember.ts'
export { capitalize, toSentence } from './sentence.ts'
export { shortenList } from './shorten-list.ts'
export { DAY_MS, HOUR_MS, MINUTE_MS } from './time.ts'
export {
  type FactsArgument,
  type FactsIn,
  type FailBy,
  failBy,
  fill,
  type InnerReason,
  joinTables,
  type NamedFailure,
  type RowsOf,
  type StoredFacts,
} from './words.ts'
