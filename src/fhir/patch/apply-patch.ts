import type { Patched } from './failure.ts'
import { applyFhirPathPatch, readsByFhirPathPatch } from './fhirpath-patch.ts'
import { applyJsonPatch, findJsonPatchReads } from './json-patch.ts'
import { isFhirPathPatch } from './operations.ts'

/** Applies a JSON Patch or a FHIRPath Patch to a copy of a resource. */
export function applyPatch(resource: unknown, patch: unknown): Patched {
  return isFhirPathPatch(patch) ? applyFhirPathPatch(resource, patch) : applyJsonPatch(resource, patch)
}

/** Whether a patch reads stored data, so that its success or its result reveals it. */
export function readsStored(patch: unknown): boolean {
  return isFhirPathPatch(patch) ? readsByFhirPathPatch(patch) : findJsonPatchReads(patch)
}
