import type { FhirProblem } from '../../fhir/index.ts'

export { isProblem } from '../../fhir/index.ts'

export type Problem = FhirProblem
