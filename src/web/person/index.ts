/** Persons, medicines and encounters of FHIR resources in words, for all pages. */

export {
  describeEncounter,
  type EncounterDescription,
  formatDose,
  formatEncounterTime,
  formatMedicine,
} from './clinical.ts'
export { nameCodeSystem } from './code-systems.ts'
export {
  chooseRecordNumber,
  computeAge,
  formatDeath,
  formatName,
  formatSex,
  INACTIVE,
  listAlike,
  listFacts,
  renderAlikeWarning,
  renderName,
  renderPatientBanner,
  renderValue,
} from './describe.ts'
export {
  areUnlike,
  findAlike,
  findConfusable,
  isNearName,
  type Person,
  type PersonName,
  readPerson,
} from './person.ts'
