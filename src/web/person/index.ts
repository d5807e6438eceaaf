/**
 * The words of a page about a person (design: Words): name, birth date, age, sex, record number, patients who are easily
 * mixed up, medicines, encounters. Read once from FHIR by `personOf`; nothing is guessed, and nothing that is missing is left blank.
 */
export { formatAge } from './age.ts'
export { findAlike, isAlike } from './alike.ts'
export { type BannerOptions, renderAlikeWarning, renderPatientBanner } from './banner.ts'
export {
  formatDate,
  formatTime,
  NOT_KNOWN,
  NOT_RECORDED,
  renderDate,
  renderDateTime,
  type When,
} from './date.ts'
export { describeEncounter, type EncounterWords, formatEncounterTime } from './encounter.ts'
export { formatDose, formatMedicine } from './medicine.ts'
export { type Person, type PersonName, readPerson } from './person.ts'
export {
  computeAge,
  formatDeath,
  formatName,
  formatSex,
  listFacts,
  recordNumber,
  renderName,
  renderValue,
} from './words.ts'
