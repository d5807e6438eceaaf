/**
 * Sample patients: invented people with coherent histories, generated from a seed and a day. Only the first start of the
 * embedded server and the tests use it. It generates resources; it neither validates nor stores them. `catalogue/` holds codes,
 * doses and schedules as tables, the files beside it decide what happens to whom, `records/` writes FHIR.
 */
export { type SampleOptions, samplePatients } from './sample-patients.ts'
