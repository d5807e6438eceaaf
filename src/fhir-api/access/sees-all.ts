import { resourceTypes } from '../../fhir/index.ts'
import type { Access } from '../../smart/index.ts'

const known = new WeakMap<Access, boolean>()

/** Whether a caller may read and search everything, so that no answer has to be looked into. */
export function seesAll(access: Access): boolean {
  let answer = known.get(access)
  if (answer === undefined) {
    answer = resourceTypes.every(
      type => access.filterFor(type, 'r') === 'everything' && access.filterFor(type, 's') === 'everything',
    )
    known.set(access, answer)
  }
  return answer
}
