/**
 * The words of a page about a person (design: Words): name, birth date, age, sex, record number, patients who are easily
 * mixed up, medicines, encounters. Read once from FHIR by `personOf`; nothing is guessed, and nothing that is missing is left blank.
 */
export { ageText } from './age.ts'
export { alikeTo, isAlike } from './alike.ts'
export { alikeWarning, type BannerOptions, patientBanner } from './banner.ts'
export {
  dateHtml,
  dateText,
  dateTimeHtml,
  NOT_KNOWN,
  NOT_RECORDED,
  timeText,
  type When,
} from './date.ts'
export { type EncounterWords, encounterTime, encounterWords } from './encounter.ts'
export { doseText, medicineText } from './medicine.ts'
export { type Person, type PersonName, personOf } from './person.ts'
export {
  deathText,
  factsOf,
  nameHtml,
  nameText,
  personAge,
  recordNumber,
  sexText,
  valueHtml,
} from './words.ts'
