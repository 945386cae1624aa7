//! Runs the models.

macro_rules! models {
    ($($model:ident)*) => {
        $(
            #[test]
            fn $model() {
                await_profile_scheduled_tests::$model();
            }
        )*
    };
}

models! {
    every_sample_is_answered_once
    a_request_that_was_woken_first_is_not_seen_at_its_next_wait
    a_release_is_noted_once_and_for_its_own_wait
    requests_that_end_leave_the_registry
    a_sample_of_one_profile_is_not_answered_in_the_next
    a_profile_and_counts_are_answered_each
    a_child_and_its_request_are_answered_each
    a_wake_during_a_poll_is_kept
    a_request_is_not_sampled_before_its_wakes_are_recorded
}
