/**
 * Compiles the R4 definitions that HL7 publishes (`hl7.fhir.r4.examples`) into `src/fhir/definitions/r4.json`, which is
 * committed: `node scripts/compile-r4.ts`. docs/decisions/0010-r4-definitions.md lists the omissions and their reasons.
 */
import { writeFileSync } from 'node:fs'
import { compileR4 } from './compile-r4/compile.ts'

writeFileSync(new URL('../src/fhir/definitions/r4.json', import.meta.url), compileR4())
