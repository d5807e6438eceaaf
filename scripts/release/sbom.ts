/**
 * `node scripts/release/sbom.ts [--interceptor]`: prints the software bill of materials (CycloneDX) of the npm package
 * `sallyport`, or of `sallyport-interceptor`, which has no dependencies. That of the image is made with it
 * (`scripts/image/root.ts`).
 */
import { parseArgs } from 'node:util'
import { describeBill, listLocked } from './bill.ts'

const { interceptor } = parseArgs({ options: { interceptor: { type: 'boolean' } } }).values
const bill = interceptor
  ? describeBill({
      type: 'library',
      name: 'sallyport-interceptor',
      description: 'SMART on FHIR access control for FHIR R4 servers on Express, Fastify or Node',
      packages: {},
    })
  : describeBill({ type: 'application', name: 'sallyport', packages: listLocked() })
process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`)
