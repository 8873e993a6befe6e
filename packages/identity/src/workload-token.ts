// The public face of workload tokens: for those who hand them out and those who check them.
export { issueWorkloadToken, type WorkloadTokenRequest } from "./token/issue-workload-token.ts";
export {
  type VerifiedWorkloadToken,
  verifyWorkloadToken,
  type WorkloadTokenVerification,
} from "./token/verify-workload-token.ts";
export {
  createWorkloadTokenKey,
  type OpenedWorkloadTokenKey,
  openWorkloadTokenKey,
  type WorkloadTokenKey,
  type WorkloadTokenSigningKey,
} from "./token/workload-token-key.ts";
export {
  authorityAudience,
  localTokenIssuer,
  serviceAccountSubject,
  type TokenJudge,
  type TokenVerdict,
  type WorkloadIdentityClaims,
  workloadTokenKeyFile,
} from "./token/workload-token.ts";
